import PalbeUnits
import PalbeWire

/// The ICE agent of a server with a public address (RFC 8445 §2.5): it answers checks and sends none.
///
/// Overview: it is always the controlled one. A check that carries our password proves that the peer sits at
/// the check's source; the peer's USE-CANDIDATE selects that source. Until the peer has nominated, the first
/// proven source is selected, so that the DTLS handshake need not wait for a nomination. The last nomination
/// wins, which follows a client from one network (or NAT mapping) to the next.
///
/// Consent (RFC 7675) is the peer's to refresh: it checks every 5 s, and 30 s without a proven check mean that
/// nobody is there (`isExpired`). An address that was never proven gets nothing but STUN, see `isProven`.
///
/// Departure from RFC 8445 §7.3 and RFC 8489 §9.1.3: a request without our fragment or password is dropped, not
/// answered with 400 or 401, so that a forged source cannot make the server send.
public struct ICELiteAgent: Sendable {
  /// Time without a proven check after which consent is gone (RFC 7675 §5.1).
  public static let consentTimeout = TimeDelta.seconds(30)
  /// Proven sources that are remembered.
  private static let provenLimit = 8

  private struct Proven {
    var address: SocketAddress
    var at: Instant
  }

  /// What is in the SDP now.
  public private(set) var local: ICECredentials
  /// What was in it before a restart; good until a check arrives under the new ones.
  private var previous: ICECredentials?
  /// Where to send media; nil until a first check was proven.
  public private(set) var selectedRemote: SocketAddress?
  /// True once the peer nominated `selectedRemote` under the present credentials.
  public private(set) var isNominated = false
  /// When the last check with our password arrived.
  public private(set) var lastAuthenticatedCheck: Instant?
  private var proven: [Proven] = []

  /// An agent that nobody has checked yet. The peer's credentials are not needed to answer it.
  public init(local: ICECredentials) {
    self.local = local
  }

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

  /// What was done about a datagram.
  public enum Outcome: Equatable, Sendable {
    /// The answer goes back to where the datagram came from; `isSelected`: media goes there too, from now on.
    case answered(isSelected: Bool)
    /// Nothing.
    case ignored(ICEIgnoreReason)
  }

  /// Takes one datagram that is STUN by its first byte, and leaves the answer in `answer`, whose memory is used again: no
  /// allocation for a check that is in order.
  public mutating func handle(
    _ datagram: Span<UInt8>, from remote: SocketAddress, at now: Instant, answer: inout ByteWriter
  ) -> Outcome {
    answer.bytes.removeAll(keepingCapacity: true)
    let request: STUNMessage
    do {
      request = try STUNMessage.parse(datagram, copiesUsername: false)
    } catch { return .ignored(.notSTUN(error)) }
    guard request.method == STUNMessage.binding else { return .ignored(.otherMethod(request.method)) }
    switch request.messageClass {
    case .request: break
    case .indication: return .ignored(.indication)
    case .success, .failure: return .ignored(.unknownTransaction)
    }
    guard let fragment = Self.localUsernameFragment(of: datagram) else { return .ignored(.otherAgent) }
    let isCurrent = fragment == local.usernameFragment
    guard isCurrent || fragment == previous?.usernameFragment else { return .ignored(.otherAgent) }
    let key = (isCurrent ? local : previous ?? local).integrityKey
    guard request.isAuthentic(in: datagram, key: key) else { return .ignored(.unauthenticated) }

    guard request.notUnderstood.isEmpty else {
      request.failure(.unknownAttribute).encode(into: &answer, integrityKey: key)
      return .answered(isSelected: false)
    }
    if case .controlled = request.role {
      // We never control; the peer takes the role over on this answer (RFC 8445 §7.3.1.1).
      request.failure(.roleConflict).encode(into: &answer, integrityKey: key)
      return .answered(isSelected: false)
    }
    prove(remote, at: now)
    request.success(from: remote).encode(into: &answer, integrityKey: key)
    guard isCurrent else { return .answered(isSelected: false) }
    // A restart keeps the old address until the peer nominates anew (RFC 8445 §9).
    guard request.useCandidate || selectedRemote == nil else { return .answered(isSelected: false) }
    if request.useCandidate {
      isNominated = true
      previous = nil
    }
    guard selectedRemote != remote else { return .answered(isSelected: false) }
    selectedRemote = remote
    return .answered(isSelected: true)
  }

  /// True for a source of a check with our password, at most `consentTimeout` ago.
  public func isProven(_ address: SocketAddress, at now: Instant) -> Bool {
    proven.contains { $0.address == address && now - $0.at <= Self.consentTimeout }
  }

  /// True when the last proven check is more than 30 s ago; false while none ever came, which is the caller's to time.
  public func isExpired(at now: Instant) -> Bool {
    lastAuthenticatedCheck.map { now - $0 > Self.consentTimeout } ?? false
  }

  /// When `isExpired` turns true unless another check comes; nil while none ever came.
  public var consentDeadline: Instant? {
    lastAuthenticatedCheck.map { $0 + Self.consentTimeout + .nanoseconds(1) }
  }

  /// Consent is gone: nothing is sent anywhere before another check (RFC 7675 §5.1).
  public mutating func loseConsent() {
    proven = []
    selectedRemote = nil
    isNominated = false
  }

  /// A TCP connection has ended: it is proven no more, and where media went to it, it goes to the source of the latest
  /// check instead, or nowhere before the next one.
  public mutating func forget(_ address: SocketAddress) {
    proven.removeAll { $0.address == address }
    guard selectedRemote == address else { return }
    selectedRemote = proven.max { $0.at < $1.at }?.address
    isNominated = false
  }

  /// New credentials (RFC 8445 §9). Media goes on to the old address until the peer nominates under the new ones.
  public mutating func restart(local new: ICECredentials) {
    previous = local
    local = new
    isNominated = false
  }

  /// Remembers a source; the one that was silent longest makes room.
  private mutating func prove(_ remote: SocketAddress, at now: Instant) {
    lastAuthenticatedCheck = max(now, lastAuthenticatedCheck ?? now)
    if let index = proven.firstIndex(where: { $0.address == remote }) {
      proven[index].at = now
      return
    }
    if proven.count == Self.provenLimit {
      let oldest = proven.indices.min { proven[$0].at < proven[$1].at }
      if let oldest { proven.remove(at: oldest) }
    }
    proven.append(Proven(address: remote, at: now))
  }
}
