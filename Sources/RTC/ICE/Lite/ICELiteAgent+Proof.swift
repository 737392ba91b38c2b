import PalbeUnits
import PalbeWire

/// Our own checks: whether the peer is where its checks come from (RFC 8445 §19.5.1, RFC 7675 §5.1).
extension ICELiteAgent {
  /// A proof that is this old is renewed by the peer's next check.
  static let renewal = TimeDelta.seconds(3)

  /// The peer's credentials, from its description. Addresses that checks came from before are checked now.
  public mutating func setRemote(_ credentials: ICECredentials) {
    guard present.remote != credentials else { return }
    present.remote = credentials
  }

  /// When `pollCheck` has something; nil: not before another check comes, or the peer's credentials.
  public var nextCheckAt: Instant? {
    paths.lazy.compactMap { path in path.check.flatMap { self.remote(of: $0) == nil ? nil : $0.due } }.min()
  }

  /// The next check of ours, written into `writer`: where it goes to, and its transaction, by which the answer finds the agent.
  ///
  /// To be sent before the answer to the check that it follows: a client answers it before it begins its handshake then, so that the
  /// first address is proven when the handshake arrives.
  public mutating func pollCheck(
    at now: Instant, using random: inout RandomSource, into writer: inout ByteWriter
  ) -> (destination: SocketAddress, id: STUNTransactionID)? {
    for index in paths.indices {
      guard var check = paths[index].check, check.due <= now, let remote = remote(of: check) else { continue }
      guard check.transmissions < LiteCheck.transmissionLimit else {
        paths[index].check = nil
        continue
      }
      let id = check.id ?? STUNTransactionID(using: &random)
      check.id = id
      check.due = now + LiteCheck.firstInterval * (1 << check.transmissions)
      check.transmissions += 1
      paths[index].check = check
      writer.bytes.removeAll(keepingCapacity: true)
      encodeCheck(id, check, key: remote.integrityKey, into: &writer)
      let count = writer.bytes.count
      guard paths[index].isProven(at: now) || paths[index].allowance >= count else { continue }
      paths[index].allowance -= count
      return (paths[index].address, id)
    }
    return nil
  }

  /// The transaction that a datagram answers, by which a server finds the agent whose check it was; nil when it is no answer.
  public static func answeredTransaction(of datagram: Span<UInt8>) -> STUNTransactionID? {
    // A success response to a Binding request: class and method together are 0x101.
    guard STUNMessage.isSTUN(datagram), datagram.uint16(at: 0) == 0x101 else { return nil }
    let low = UInt64(datagram.uint32(at: 12)) << 32 | UInt64(datagram.uint32(at: 16))
    return STUNTransactionID(high: datagram.uint32(at: 8), low: low)
  }

  /// A check came from there: it is followed by one of ours, unless one was answered lately. One under way is sent again.
  mutating func wantProof(of index: Int, _ generation: LiteGeneration.Number, at now: Instant) {
    if paths[index].check?.generation == generation {
      paths[index].check?.repeatSchedule(from: now)
      return
    }
    if let last = paths[index].provenAt, now - last < Self.renewal { return }
    paths[index].check = LiteCheck(generation, due: now)
  }

  /// An answer to a check of ours, if it is one: from where the check went to, and under the peer's password.
  mutating func prove(
    by response: STUNMessage, in datagram: Span<UInt8>, from remote: SocketAddress, at now: Instant
  ) -> Outcome {
    guard let index = path(at: remote), let check = paths[index].check, check.id == response.transactionID,
      let credentials = self.remote(of: check)
    else { return .ignored(.unknownTransaction) }
    guard response.isAuthentic(in: datagram, key: credentials.integrityKey) else {
      return .ignored(.unauthenticated)
    }
    paths[index].check = nil
    paths[index].provenAt = now
    lastProof = now
    return .proven(isSelected: select(at: now))
  }

  /// The peer's credentials that a check goes under.
  private func remote(of check: LiteCheck) -> ICECredentials? {
    check.generation == .present ? present.remote : previous?.remote
  }

  private func encodeCheck(
    _ id: STUNTransactionID, _ check: LiteCheck, key: [UInt8], into writer: inout ByteWriter
  ) {
    var request = STUNMessage(.request, transactionID: id)
    request.username = (check.generation == .present ? present : previous ?? present).username
    request.priority = ICECandidate.priority(.peerReflexive, localPreference: .max)
    // With the lowest tie-breaker a peer that is mistaken about its role takes the controlling one (RFC 8445 §7.3.1.1).
    request.role = .controlled(tieBreaker: 0)
    request.encode(into: &writer, integrityKey: key)
  }
}

extension ICELiteAgent {
  /// Bytes of a fragment that a server's own agents may have.
  private static let fragmentLimit = 15

  /// The fragment by which a server finds the agent that a request is for; nil when it is no request with one.
  ///
  /// Allocates nothing, whatever the datagram is: a fragment of more than 15 bytes is none of ours.
  public static func localUsernameFragment(of datagram: Span<UInt8>) -> String? {
    // A Binding request: class and method together are 1.
    guard STUNMessage.isSTUN(datagram), datagram.uint16(at: 0) == STUNMessage.binding else { return nil }
    var offset = STUNMessage.headerByteCount
    while offset + 4 <= datagram.count {
      let length = Int(datagram.uint16(at: offset + 2))
      let start = offset + 4
      guard start + length <= datagram.count else { return nil }
      // What lies behind the integrity is nobody's word.
      if datagram.uint16(at: offset) == STUNAttribute.messageIntegrity { return nil }
      if datagram.uint16(at: offset) == STUNAttribute.username {
        let end = start + min(length, fragmentLimit + 1)
        guard let colon = (start..<end).first(where: { datagram[$0] == UInt8(ascii: ":") }) else {
          return nil
        }
        return unsafe datagram.extracting(start..<colon).withUnsafeBufferPointer { bytes in
          unsafe String(decoding: bytes, as: UTF8.self)
        }
      }
      offset = start + (length + 3) & ~3
    }
    return nil
  }
}
