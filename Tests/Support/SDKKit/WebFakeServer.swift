import Palbase
import PalbeUnits
import PalbeWebServer

/// A `FakeServer` behind a real socket.
public final class WebFakeServer: Sendable {
  public let fake: FakeServer
  private let server: WebServer
  public var port: UInt16 { server.port }
  public var url: String { "http://127.0.0.1:\(server.port)" }

  public init(_ fake: FakeServer) throws {
    self.fake = fake
    var limits = WebServerLimits()
    limits.additionalHeaderNames = ["idempotency-key", "palbe-device"]
    limits.requestTimeout = .seconds(600)
    server = try WebServer(host: "127.0.0.1", port: 0, limits: limits, handler: Handler(fake: fake))
  }

  deinit { server.stop() }

  private struct Handler: WebServerHandler {
    let fake: FakeServer

    func respond(to request: HTTPRequest) -> HTTPResponse {
      let answer = fake.answer(
        .init(
          method: request.method, path: request.path,
          headers: Dictionary(request.headers.map { ($0.name, $0.value) }) { $1 }, body: request.body))
      return HTTPResponse(
        status: answer.status, headers: answer.headers.map { .init($0.key, $0.value) }, body: answer.body)
    }

    func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision {
      .reject(.text("no", status: 404))
    }
  }
}
