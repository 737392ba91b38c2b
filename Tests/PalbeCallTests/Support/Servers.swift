import Foundation
import PalbeCall
import PalbeCallLab
import PalbeSFUServer
import PalbeServerObservation
import PalbeUnits
import PalbeWebServer

/// A real SFU on free ports of loopback.
struct TestSFU {
  static let key = "test"
  static let secret = "a secret of more than thirty-two characters"
  let server: SFUServer

  /// - Parameter host: nil where the server listens by default.
  init(host: String? = "127.0.0.1", _ change: (inout SFUServer.Configuration) -> Void = { _ in }) throws {
    var configuration = SFUServer.Configuration(keys: [Self.key: Self.secret])
    if let host = host.flatMap({ SocketAddress(host: $0, port: 0) }) { configuration.host = host }
    configuration.port = 0
    configuration.udpPort = 0
    configuration.workerCount = 1
    configuration.log = ServerLog(level: .warning)
    change(&configuration)
    server = try SFUServer(configuration)
  }

  func stop() { server.stop() }

  var url: String { url("127.0.0.1") }

  func url(_ host: String) -> String {
    "ws://\(host.contains(":") ? "[\(host)]" : host):\(server.signalingAddress.port)"
  }

  static func token(_ identity: String, room: String = "room", secret: String = secret) throws -> String {
    try TestToken(room: room, identity: identity).signed(
      key: key, secret: secret, now: Int64(Date().timeIntervalSince1970))
  }
}

/// A server that says the same to everybody who wants in.
struct Doorman: WebServerHandler {
  let decision: UpgradeDecision

  func respond(to request: HTTPRequest) -> HTTPResponse { HTTPResponse(status: 200) }
  func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision { decision }

  /// Accepts and then says nothing.
  static let silent = Doorman(decision: .accept(Listener()))

  private struct Listener: WebSocketHandler {
    func opened() {}
    func received(binary: [UInt8]) {}
    func received(text: String) {}
    func closed(_ closure: WebSocketClosure) {}
  }
}

extension WebServer {
  var url: String { "ws://127.0.0.1:\(port)" }
}
