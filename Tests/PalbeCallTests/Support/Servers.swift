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

  init() throws {
    var configuration = SFUServer.Configuration(keys: [Self.key: Self.secret])
    configuration.host = SocketAddress(ipv4: 127, 0, 0, 1, port: 0)
    configuration.port = 0
    configuration.udpPort = 0
    configuration.workerCount = 1
    configuration.log = ServerLog(level: .warning)
    server = try SFUServer(configuration)
  }

  func stop() { server.stop() }

  var url: String { "ws://127.0.0.1:\(server.signalingAddress.port)" }

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
