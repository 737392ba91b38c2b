import PalbeCrypto
import PalbeUnits
import PalbeWire

@testable import Palbase
@testable import PalbeMessaging

extension FuzzTarget {
  /// The file that a vault's key lies in. Made-up bytes under a passphrase never open; a plain key opens only as it was
  /// written.
  static let vaultKey = FuzzTarget(name: "vault-key") { bytes in
    if let key = try? VaultKey.open(bytes, nil) {
      demand([UInt8](key.span) == Array(bytes[6..<38]) && bytes.count == 46, "another key than the file's")
    }
    // What scrypt would work on for long says nothing here.
    guard bytes.count == 86, bytes[6] <= 4, bytes[7] <= 2, bytes[8] <= 2 else { return }
    if (try? VaultKey.open(bytes, [1])) != nil, bytes[5] == 1 { fatalError("a made-up key opens") }
  }

  /// Names of records and groups in a chats' file that somebody else wrote: what is read of them is bounded, and what
  /// we wrote comes back.
  ///
  /// Input: names, parted by 0xff.
  static let sealedNames = FuzzTarget(name: "sealed-names") { bytes in
    guard let user = UserID(bytes: [UInt8](repeating: 2, count: 16)) else { return }
    let names = SealedNames(SealKeys(SymmetricKey(copying: [UInt8](repeating: 1, count: 32)), user))
    let parts = bytes.split(separator: 0xff, omittingEmptySubsequences: false).prefix(64).map { Array($0) }
    for part in parts {
      if let group = names.group(of: part) { demand(names.scope(of: group) == part, "a made-up group") }
      let scope = names.scope(of: part)
      demand(names.group(of: scope) == part, "a group is lost")
      demand(names.group(of: names.scope(of: nil)) == nil, "the client's own records are no group's")
    }
    let scope = names.scope(of: parts.first)
    let stored = names.names(parts, in: scope)
    demand(stored.map(\.count) == parts.map(\.count), "a name has another length")
    demand(names.names(parts.map { names.inFile($0, in: scope) }, in: scope) == parts, "a name is lost")
  }

  /// A server's answer to a sign-in and its list of sessions: a token that is taken can stand in a header and a file.
  static let sessionAnswer = FuzzTarget(name: "session-answer") { bytes in
    let time = Timebase(
      now: { Instant(nanoseconds: 1) }, wallMilliseconds: { 1 }, bootToken: "1", sleep: { _ in },
      random: { 1 })
    if let answer = try? JSON.decode(bytes, as: TokenAnswer.self), let record = try? answer.record(time) {
      let texts = [record.accessToken, record.refreshToken, record.userId, record.sessionId]
      demand(
        texts.allSatisfy { $0.utf8.allSatisfy { (33...126).contains($0) } && !$0.isEmpty }, "a token breaks")
      _ = record.isStale(time)
      demand("\(record)".contains(record.userId), "a session says whose it is, and no more")
    }
    _ = try? JSON.decode(bytes, as: [AuthSession].self)
  }

  /// The address of a server and addresses that it gives: a secure one leads to no insecure place, and none of them breaks
  /// a request.
  ///
  /// Input: the server's address, a line feed, the other address.
  static let serverAddress = FuzzTarget(name: "server-address") { bytes in
    let parts = bytes.split(separator: 0x0a, maxSplits: 1, omittingEmptySubsequences: false)
    let texts = parts.map { String(decoding: $0, as: UTF8.self) }
    guard let server = ServerURL(texts[0]) else { return }
    demand(ServerURL(server.text)?.isSecure == server.isSecure, "\(server.text) changes")
    demand(server.text.utf8.allSatisfy { (33...126).contains($0) }, "\(server.text) breaks a request")
    if let address = texts.dropFirst().first {
      let route = server.route("/v1", [("q", address)])
      demand(route.utf8.allSatisfy { (33...126).contains($0) }, "\(route) breaks a request")
      if let resolved = server.resolve(address) {
        demand(resolved.hasPrefix("https://") || !server.isSecure, "\(resolved) is not secure")
      }
    }
  }
}
