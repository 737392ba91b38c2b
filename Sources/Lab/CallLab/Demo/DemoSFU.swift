import Foundation
import PalbeCrypto
import PalbeEventLoop
import PalbeUnits
import PalbeWire

/// A `palbe-sfu` of our own on loopback, with a random key and an audit log of every packet it receives.
final class DemoSFU: Sendable {
  /// What it printed cannot be understood.
  struct StrangeGreeting: Error, CustomStringConvertible {
    var line: String
    var description: String { "palbe-sfu is ready but does not say where: \(line)" }
  }

  let process: ChildProcess
  /// The signaling address.
  let edgeURL: String
  private let secret: String
  private let auditLog: String

  /// The words its ready line begins with.
  private static let greeting = "palbe-sfu "
  private static let keyName = "demo"

  /// What it is started with. Ports are whatever is free.
  static func arguments(secret: String, auditLog: String) -> [String] {
    [
      "serve", "--host", "127.0.0.1", "--port", "0", "--udp-port", "0", "--key", "\(keyName):\(secret)",
      "--audit-log", auditLog,
    ]
  }

  /// The signaling address in a ready line: `palbe-sfu 1.0.0 listening: signaling 127.0.0.1:7880, media …`.
  static func edgeURL(fromGreeting line: String) -> String? {
    guard let mark = line.range(of: "signaling ") else { return nil }
    let address = line[mark.upperBound...].prefix { $0 != "," && $0 != " " }
    guard let colon = address.lastIndex(of: ":"), let port = UInt16(address[address.index(after: colon)...]),
      port > 0, colon > address.startIndex
    else { return nil }
    return "ws://\(address)"
  }

  /// Starts `program` and waits until it listens. `started` gets the process at once, so that it can be ended
  /// whatever happens then.
  static func start(
    _ program: String, folder: String, name: String, started: (ChildProcess) -> Void
  ) async throws -> DemoSFU {
    var random = SystemRandom.source()
    let secret = Hex.encode(random.bytes(32))
    let auditLog = "\(folder)/\(name).packets"
    let process = try ChildProcess.start(program, arguments: arguments(secret: secret, auditLog: auditLog))
    started(process)
    let line = try await process.line(beginningWith: greeting, within: .seconds(10))
    guard let edgeURL = edgeURL(fromGreeting: line) else { throw StrangeGreeting(line: line) }
    return DemoSFU(process: process, edgeURL: edgeURL, secret: secret, auditLog: auditLog)
  }

  private init(process: ChildProcess, edgeURL: String, secret: String, auditLog: String) {
    self.process = process
    self.edgeURL = edgeURL
    self.secret = secret
    self.auditLog = auditLog
  }

  /// A token for its rooms.
  func token(room: String, identity: String) throws -> String {
    try TestToken(room: room, identity: identity).signed(
      key: Self.keyName, secret: secret, now: WallClock.unixSeconds)
  }

  /// The packets it received. Call after it has ended, when all are written.
  func receivedPackets() throws -> AuditLog { try AuditLog(contentsOf: auditLog) }
}
