import PalbeUnits
import PalbeWire

/// A full ICE agent for one component (RFC 8445): RTP, RTCP and DTLS of a call share one path.
///
/// ## Overview
///
/// The caller owns the sockets and names each by an index, the base. It gives the agent its own and the peer's
/// candidates as they become known (trickle, RFC 8838), every STUN datagram that arrives, and the time; it sends
/// what `pollTransmit` returns and calls `handleTimeout` at `nextDeadline`. What goes to a TCP address it frames (RFC 4571)
/// and writes to a connection to there, which it opens for the first of it; where that ends, `disconnected` says so.
///
///     new ──remote credentials and a pair──▶ checking ──a check was answered──▶ connected ──nominated──▶ completed
///                                               │                                   ▲ │                     ▲ │
///                                               │                            answer │ │ 12.5 s silence      │ │
///                                               ▼                                   │ ▼                     │ ▼
///                                             failed ◀─────────30 s silence──────── disconnected ───────────┘
///
/// ## Function
///
/// Pairs are checked best first, one every 50 ms, triggered ones before all others; an unanswered check is repeated.
/// Media may use the best working pair at once (RFC 8445 §12.1). The controlling agent nominates the best working
/// pair when no better one is left to try or after 200 ms, by a check with USE-CANDIDATE (regular nomination). From then on
/// consent checks keep the path alive, and 30 s without an answer end it. They repeat USE-CANDIDATE, so that a lite
/// server follows when a NAT gives us another address. Pairs over TCP (RFC 6544) are checked when UDP has had half a
/// second, carry media as soon as they work, and are nominated when UDP has not worked 1.5 s later.
///
/// ## Implementation
///
/// `ICEChecklist` orders the pairs, `checks` are the transactions under way, `ICEConsent` is the path in use.
/// Lists are bounded: 16 local and 64 remote candidates, 100 pairs, 64 datagrams and 64 events not yet polled.
public struct ICEAgent: Sendable {
  static let localLimit = 16
  static let remoteLimit = 64
  static let queueLimit = 64

  struct Local: Sendable {
    var candidate: ICECandidate
    var base: Int

    func reaches(_ remote: SocketAddress) -> Bool {
      candidate.address.family == remote.family && candidate.transport == remote.transport
    }

    func serves(_ path: ICEPath) -> Bool { base == path.base && reaches(path.remote) }
  }

  let configuration: ICEConfiguration
  var random: RandomSource
  var tieBreaker: UInt64
  /// Ours at this moment; a role conflict can switch it.
  public internal(set) var role: ICERole
  /// Where the agent stands.
  public internal(set) var state = ICEState.new
  /// What is in our SDP.
  public internal(set) var local: ICECredentials
  /// What is in the peer's SDP, once known.
  public internal(set) var remote: ICECredentials?
  /// Before a restart; requests under them are still answered.
  var previousLocal: ICECredentials?
  /// True for a lite peer, which never checks and never controls.
  public internal(set) var isRemoteLite = false
  var hasAllRemoteCandidates = false

  var locals: [Local] = []
  var remotes: [ICECandidate] = []
  var checklist = ICEChecklist()
  var checks: [ICECheck] = []
  var consent: ICEConsent?
  /// When the next check may be sent.
  var nextPace = Instant.zero
  /// When the checklist has failed unless a pair works by then.
  var checkDeadline: Instant?
  /// From when on connections are opened for pairs over TCP; nil before there are credentials.
  var streamStart: Instant?
  /// When the best working pair is nominated although a better one might yet work.
  var nominationDeadline: Instant?
  /// True while checks may be sent: a failed agent needs a restart.
  var isChecking: Bool { remote != nil && state != .failed }
  /// A nominating check is under way.
  var isNominating: Bool { checks.contains { $0.nominates } }

  var transmits: [ICETransmit] = []
  var events: [ICEEvent] = []

  /// An agent without candidates.
  ///
  /// - Parameters:
  ///   - tieBreaker: settles a role conflict; random, drawn from `random` where nil.
  ///   - random: transaction ids come from it, so it must be unpredictable.
  public init(
    role: ICERole, local: ICECredentials, tieBreaker: UInt64? = nil, random: RandomSource,
    configuration: ICEConfiguration = ICEConfiguration()
  ) {
    self.role = role
    self.local = local
    self.configuration = configuration
    var random = random
    self.tieBreaker = tieBreaker ?? random.next()
    self.random = random
  }

  /// Where media goes; nil before a pair works and after consent ran out.
  public var selectedPair: ICESelectedPair? { consent?.pair }

  /// The next datagram to send.
  public mutating func pollTransmit() -> ICETransmit? { transmits.isEmpty ? nil : transmits.removeFirst() }

  /// The next thing that happened.
  public mutating func pollEvent() -> ICEEvent? { events.isEmpty ? nil : events.removeFirst() }

  /// The peer's credentials from its SDP. Checks start as soon as there is a pair.
  public mutating func setRemote(_ credentials: ICECredentials, isLite: Bool, at now: Instant) {
    guard remote != credentials || isRemoteLite != isLite else { return }
    remote = credentials
    isRemoteLite = isLite
    checkDeadline = now + configuration.checkTimeout
    streamStart = now + configuration.streamDelay
    if isLite { become(.controlling) }
    advance(at: now)
  }

  /// A candidate of ours on the socket `base`. Only host and relayed ones are paired: checks of a reflexive one leave
  /// from its base (RFC 8445 §6.1.2.4). Of TCP only active ones are taken; other components than 1 are ignored.
  public mutating func addLocalCandidate(_ candidate: ICECandidate, base: Int, at now: Instant) {
    guard candidate.isUDP(orTCP: ICECandidate.active), candidate.component == 1,
      locals.count < Self.localLimit,
      candidate.kind == .host || candidate.kind == .relayed,
      !locals.contains(where: { $0.base == base && $0.candidate.address == candidate.address })
    else { return }
    let new = Local(candidate: candidate, base: base)
    locals.append(new)
    for remote in remotes { pair(new, remote) }
    advance(at: now)
  }

  /// A candidate of the peer's. TCP ones that are not passive, other components than 1, port 0 and candidates of another
  /// generation (`ufrag`) than the one set are ignored, as is what comes after 64 of them.
  public mutating func addRemoteCandidate(_ candidate: ICECandidate, at now: Instant) {
    guard candidate.isUDP(orTCP: ICECandidate.passive), candidate.component == 1, candidate.address.port != 0,
      remotes.count < Self.remoteLimit
    else { return }
    if let fragment = candidate.usernameFragment, let remote, fragment != remote.usernameFragment { return }
    if let known = remotes.firstIndex(where: { $0.address == candidate.address }) {
      // A peer-reflexive candidate becomes what the peer says it is (RFC 8445 §7.3.1.3).
      remotes[known] = candidate
    } else {
      remotes.append(candidate)
    }
    for local in locals { pair(local, candidate) }
    advance(at: now)
  }

  /// The peer will name no further candidates: checks that all failed are then final.
  public mutating func endOfRemoteCandidates(at now: Instant) {
    hasAllRemoteCandidates = true
    advance(at: now)
  }

  /// Begins again with new credentials (RFC 8445 §9). Our candidates stay; the peer's credentials and candidates
  /// must come anew. Media stays on the present pair until one of the new generation is nominated.
  public mutating func restart(local new: ICECredentials, at now: Instant) {
    previousLocal = local
    local = new
    remote = nil
    remotes = []
    hasAllRemoteCandidates = false
    checklist = ICEChecklist()
    checks = []
    checkDeadline = nil
    streamStart = nil
    nominationDeadline = nil
    if consent == nil { move(to: .new) }
    advance(at: now)
  }

  /// When `handleTimeout` must be called at the latest; nil: not before something else happens.
  public var nextDeadline: Instant? {
    var deadline = Instant.distantFuture
    if let nextCheck { deadline = min(deadline, nextCheck) }
    for check in checks where !check.isReplaced { deadline = min(deadline, check.due) }
    if let checkDeadline { deadline = min(deadline, checkDeadline) }
    if let nominationDeadline { deadline = min(deadline, nominationDeadline) }
    if let consent {
      deadline = min(deadline, consent.nextCheck, consent.lastResponse + configuration.consentTimeout)
      if state == .connected || state == .completed {
        deadline = min(deadline, consent.lastResponse + configuration.disconnectAfter)
      }
    }
    return deadline == .distantFuture ? nil : deadline
  }

  /// Does what is due at `now`.
  public mutating func handleTimeout(at now: Instant) { advance(at: now) }

  /// Everything that time or a new fact can make due, in one order whatever the cause.
  mutating func advance(at now: Instant) {
    retransmit(at: now)
    sendChecks(at: now)
    nominate(at: now)
    checkConsent(at: now)
    settle(at: now)
  }

  mutating func pair(_ local: Local, _ remote: ICECandidate) {
    guard local.reaches(remote.address) else { return }
    checklist.insert(
      ICEPath(base: local.base, remote: remote.address), local: local.candidate,
      remotePriority: remote.priority,
      role: role)
  }

  mutating func become(_ new: ICERole) {
    guard role != new else { return }
    role = new
    checklist.sort(new)
    nominationDeadline = nil
    emit(.roleChanged(new))
  }

  mutating func move(to new: ICEState) {
    guard state != new else { return }
    state = new
    emit(.stateChanged(new))
  }

  mutating func emit(_ event: ICEEvent) {
    if events.count == Self.queueLimit { events.removeFirst() }
    events.append(event)
  }

  mutating func transmit(_ bytes: [UInt8], on path: ICEPath) {
    if transmits.count == Self.queueLimit { transmits.removeFirst() }
    transmits.append(ICETransmit(base: path.base, remote: path.remote, bytes: bytes))
  }
}
