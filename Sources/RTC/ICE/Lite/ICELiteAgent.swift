import PalbeUnits
import PalbeWire

/// The ICE agent of a server with a public address (RFC 8445 §2.5): it answers checks, and sends one only to an address that a check
/// came from.
///
/// ## Overview
///
///     heard ── our own check is answered ──▶ proven ── 30 s without an answer ──▶ heard
///
/// A check that carries our password says who sent it, but not that the sender is where the check came from: its source may be
/// forged by the peer itself, or the check be somebody else's copy. So an address gets media only once it answered a check of ours,
/// whose transaction id nobody else can know (`ICELiteAgent+Proof`). Until then media stays where it was, and the address gets no
/// more than three times the bytes that came from it.
///
/// ## Function
///
/// It is always the controlled one. The last nomination of a proven address wins, which follows a client from one network (or NAT
/// mapping) to the next. Until the peer has nominated, the first proven address is selected, so that the DTLS handshake need not
/// wait for a nomination.
///
/// Consent (RFC 7675) is kept by the same checks: each check of the peer's is followed by one of ours where the last answer is 3 s
/// old. 30 s without an answer, or without a check, mean that nobody is there (`isExpired`).
///
/// A check that comes a second time is answered, as its first answer may have been lost, and changes nothing; from an address that
/// nothing else came from it is not even answered.
///
/// Departure from RFC 8445 §7.3 and RFC 8489 §9.1.3: a request without our fragment or password is dropped, not
/// answered with 400 or 401, so that a forged source cannot make the server send.
public struct ICELiteAgent: Sendable {
  /// Time without an answer, or a check, after which consent is gone (RFC 7675 §5.1).
  public static let consentTimeout = TimeDelta.seconds(30)
  /// Addresses that are remembered.
  private static let pathLimit = 8

  var present: LiteGeneration
  /// Before a restart; good until the peer has nominated under the present one.
  var previous: LiteGeneration?
  /// What is in the SDP now.
  public var local: ICECredentials { present.local }
  /// Where to send media; nil until a first address has proven itself.
  public internal(set) var selectedRemote: SocketAddress?
  /// True once the peer nominated `selectedRemote` under the present credentials.
  public internal(set) var isNominated = false
  /// When the last check with our password arrived.
  public private(set) var lastAuthenticatedCheck: Instant?
  /// When a check of ours was answered last.
  var lastProof: Instant?
  var paths: [LitePath] = []
  private var nominationCount: UInt64 = 0
  private var seen = SeenTransactions()

  /// An agent that nobody has checked yet. The peer's credentials are not needed to answer it.
  public init(local: ICECredentials) {
    present = LiteGeneration(local: local)
  }

  /// What was done about a datagram.
  public enum Outcome: Equatable, Sendable {
    /// The answer goes back to where the datagram came from, behind what `pollCheck` has; `isSelected`: media goes there too, from
    /// now on.
    case answered(isSelected: Bool)
    /// The address has proven itself.
    case proven(isSelected: Bool)
    /// Nothing.
    case ignored(ICEIgnoreReason)
  }

  /// Takes one datagram that is STUN by its first byte, and leaves the answer in `answer`, whose memory is used again: no
  /// allocation for a check that is in order.
  public mutating func handle(
    _ datagram: Span<UInt8>, from remote: SocketAddress, at now: Instant, answer: inout ByteWriter
  ) -> Outcome {
    answer.bytes.removeAll(keepingCapacity: true)
    let message: STUNMessage
    do {
      message = try STUNMessage.parse(datagram, copiesUsername: false)
    } catch { return .ignored(.notSTUN(error)) }
    guard message.method == STUNMessage.binding else { return .ignored(.otherMethod(message.method)) }
    switch message.messageClass {
    case .request: return take(message, in: datagram, from: remote, at: now, answer: &answer)
    case .success: return prove(by: message, in: datagram, from: remote, at: now)
    case .indication: return .ignored(.indication)
    case .failure: return .ignored(.unknownTransaction)
    }
  }

  private mutating func take(
    _ request: STUNMessage, in datagram: Span<UInt8>, from remote: SocketAddress, at now: Instant,
    answer: inout ByteWriter
  ) -> Outcome {
    guard let fragment = Self.localUsernameFragment(of: datagram) else { return .ignored(.otherAgent) }
    let isCurrent = fragment == local.usernameFragment
    guard isCurrent || fragment == previous?.local.usernameFragment else { return .ignored(.otherAgent) }
    let key = (isCurrent ? present : previous ?? present).local.integrityKey
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
    let isNew = seen.insert(request.transactionID)
    if !isNew, path(at: remote) == nil { return .ignored(.replayed) }
    request.success(from: remote).encode(into: &answer, integrityKey: key)
    let index = isNew ? hear(remote, at: now) : path(at: remote)
    guard let index else { return .answered(isSelected: false) }
    // An answer of ours is shorter than the shortest request that is answered.
    paths[index].allowance += 3 * datagram.count - answer.bytes.count
    guard isNew else { return .answered(isSelected: false) }
    if isCurrent, request.useCandidate {
      nominationCount += 1
      paths[index].nomination = nominationCount
    }
    wantProof(of: index, isCurrent ? .present : .previous, at: now)
    return .answered(isSelected: select(at: now))
  }

  /// True for a source of a check with our password, at most `consentTimeout` ago. Anybody may have sent it.
  public func isHeard(_ address: SocketAddress, at now: Instant) -> Bool {
    path(at: address).map { paths[$0].isHeard(at: now) } ?? false
  }

  /// True for an address that answered a check of ours at most `consentTimeout` ago: the peer is there.
  public func isProven(_ address: SocketAddress, at now: Instant) -> Bool {
    path(at: address).map { paths[$0].isProven(at: now) } ?? false
  }

  /// True when the last check, or the last answer to one of ours, is more than 30 s ago; false while none ever came, which is the
  /// caller's to time.
  public func isExpired(at now: Instant) -> Bool {
    consentDeadline.map { now >= $0 } ?? false
  }

  /// When `isExpired` turns true unless another check or answer comes; nil while none ever came.
  public var consentDeadline: Instant? {
    guard let lastAuthenticatedCheck else { return nil }
    let last = min(lastAuthenticatedCheck, lastProof ?? lastAuthenticatedCheck)
    return last + Self.consentTimeout + .nanoseconds(1)
  }

  /// Consent is gone: nothing is sent anywhere before an address has proven itself again (RFC 7675 §5.1).
  public mutating func loseConsent() {
    paths = []
    selectedRemote = nil
    isNominated = false
  }

  /// A TCP connection has ended: it is proven no more, and where media went to it, it goes to the proven source of the latest
  /// check instead, or nowhere before the next one.
  public mutating func forget(_ address: SocketAddress, at now: Instant) {
    paths.removeAll { $0.address == address }
    _ = select(at: now)
  }

  /// New credentials (RFC 8445 §9). Media goes on to the old address until the peer nominates under the new ones.
  public mutating func restart(local new: ICECredentials) {
    previous = present
    present = LiteGeneration(local: new)
    isNominated = false
    for index in paths.indices {
      paths[index].nomination = 0
      paths[index].check = nil
    }
  }

  func path(at address: SocketAddress) -> Int? { paths.firstIndex { $0.address == address } }

  /// Remembers a source of a check, and where it is in `paths`.
  private mutating func hear(_ remote: SocketAddress, at now: Instant) -> Int {
    lastAuthenticatedCheck = max(now, lastAuthenticatedCheck ?? now)
    if let index = path(at: remote) {
      paths[index].heardAt = now
      return index
    }
    if paths.count == Self.pathLimit, let index = dispensable(at: now) { paths.remove(at: index) }
    paths.append(LitePath(address: remote, heardAt: now))
    return paths.count - 1
  }

  /// The one to make room: the unproven one that was silent longest, else the proven one, but never the one in use. Forged sources
  /// so drive out each other.
  private func dispensable(at now: Instant) -> Int? {
    let others = paths.indices.filter { paths[$0].address != selectedRemote }
    let unproven = others.filter { !paths[$0].isProven(at: now) }
    return (unproven.isEmpty ? others : unproven).min { paths[$0].heardAt < paths[$1].heardAt }
  }

  /// Draws the conclusion from what is nominated and proven: where media goes. True when it goes elsewhere now.
  mutating func select(at now: Instant) -> Bool {
    let before = selectedRemote
    var best: Int?
    for index in paths.indices where paths[index].isProven(at: now) && paths[index].nomination > 0 {
      if best.map({ paths[index].nomination > paths[$0].nomination }) ?? true { best = index }
    }
    if let best {
      selectedRemote = paths[best].address
      isNominated = true
      previous = nil
    } else if !(before.map { isProven($0, at: now) } ?? false) {
      // A restart keeps the old address until the peer nominates anew (RFC 8445 §9), but none that proves itself no more.
      let proven = paths.filter { $0.isProven(at: now) }
      selectedRemote = proven.max { $0.heardAt < $1.heardAt }?.address
      isNominated = false
    }
    return selectedRemote != before && selectedRemote != nil
  }
}
