import PalbeUnits

/// The realtime socket without a socket: what is sent, when it is opened and opened again, who hears what.
///
///                    ┌────────── somebody subscribes ──────────┐
///                    │                                         ▼
///     idle ◀─last one gone─ open ◀──opened── connecting ◀── waiting ──▶ …
///       ▲                    │                   │              ▲
///       │                    └──closed──┬────────┘ failed       │ jittered, doubling to 30 s
///       │                               └───────────────────────┘
///       └── nobody signed in; device removed or unknown: until that changes
///
/// It is one person's: when they sign out or somebody else signs in, every subscription ends. A new access token of the same
/// person is handed to the open socket (`renew`). At most `window` frames wait for their answer; the others queue, so
/// that a thousand subscriptions after a reconnect do not run into the server's limit.
struct RealtimeMachine {
  typealias SubscriptionID = UInt64
  typealias RequestID = UInt64
  typealias LinkID = UInt64

  /// Who connects as what.
  struct Credentials: Equatable {
    var userId: String
    var accessToken: String
    /// When to renew the access token.
    var renewal: Instant
    /// Nil while the device is not enrolled; there is no socket then.
    var device: DeviceCredential?
  }

  /// Why a link could not be opened, or is gone.
  enum LinkEnd: Equatable {
    /// The upgrade was answered with another status; the code of its body, if it could be read.
    case refused(status: Int, code: FailureCode?)
    /// No connection.
    case failed
    /// It was open.
    case closed(code: UInt16, reason: String)
  }

  enum Action: Equatable {
    case connect(LinkID, Credentials)
    case send(LinkID, String)
    case close(LinkID)
    /// The token is over or will be soon.
    case renewToken(used: String)
    /// The server does not know the device.
    case enrol(DeviceCredential, userId: String)
    case markRevoked(DeviceCredential, userId: String)
    case deliver(SubscriptionID, RealtimeItem)
    case answer(RequestID, Result<[UInt8], BackendError>)
  }

  enum Phase: Equatable {
    case idle
    case waiting(until: Instant)
    case connecting(LinkID)
    case open(LinkID, since: Instant)
    /// Until the credentials change.
    case blocked
  }

  static let window = 32
  static let queueLimit = 4_096
  static let heartbeatInterval = TimeDelta.seconds(25)
  static let answerPatience = TimeDelta.seconds(15)
  /// A socket without subscribers stays open so long.
  static let linger = TimeDelta.seconds(5)
  /// Open so long, it counts as having worked.
  static let steadyTime = TimeDelta.seconds(30)

  /// What waits for an answer.
  private enum Purpose: Equatable {
    case subscribe(topic: String, [SubscriptionID])
    case unsubscribe
    case request(RequestID)
    case renew(token: String)
  }
  private struct Waiting {
    var purpose: Purpose
    var frame: RealtimeFrame
  }
  private struct TopicState {
    var subscribers: Set<SubscriptionID> = []
    /// The server said yes on this link.
    var isJoined = false
    var retry: Instant?
    var refusals = 0
  }

  private(set) var phase = Phase.idle
  private(set) var credentials: Credentials?
  private var topics: [String: TopicState] = [:]
  private var topicOf: [SubscriptionID: String] = [:]
  private var queue: [Waiting] = []
  private var inFlight: [Int64: (purpose: Purpose, deadline: Instant)] = [:]
  private var frameCount: Int64 = 0
  private var linkCount: LinkID = 0
  private var attempts = 0
  private var nextHeartbeat = Instant.distantFuture
  private var emptySince: Instant?
  /// The token that the link has.
  private var linkToken = ""
  /// The token whose renewal has been asked for.
  private var renewing: String?
  private var actions: [Action] = []
  private var random: RandomSource

  init(random: RandomSource) { self.random = random }

  /// What is to be done next, nil when all is.
  mutating func pollAction() -> Action? { actions.isEmpty ? nil : actions.removeFirst() }

  // MARK: What the shell says

  mutating func setCredentials(_ new: Credentials?, at now: Instant) {
    let old = credentials
    credentials = new
    guard new != old else { return }
    if old?.userId != new?.userId {
      if old != nil { endAll(new == nil ? .signedOut : .personChanged) }
      dropLink(.connectionLost)
      attempts = 0
      phase = .idle
    } else if old?.device?.token != new?.device?.token || old?.device?.isRevoked != new?.device?.isRevoked {
      dropLink(.connectionLost)
      attempts = 0
      phase = .idle
    } else if case .open = phase, let new {
      renewLink(with: new)
    } else if case .waiting(let until) = phase, old?.accessToken != new?.accessToken {
      // The renewal that the last refusal asked for is here.
      phase = .waiting(until: min(until, now + backoff(least: .zero)))
    }
    settle(at: now)
  }

  mutating func subscribe(_ id: SubscriptionID, to topic: String, at now: Instant) {
    guard credentials != nil else { return deliver(id, .ended(.signedOut)) }
    guard credentials?.device?.isRevoked != true else { return deliver(id, .ended(.deviceRevoked)) }
    topicOf[id] = topic
    topics[topic, default: TopicState()].subscribers.insert(id)
    if case .open = phase { ask(topic, [id]) }
    settle(at: now)
  }

  mutating func unsubscribe(_ id: SubscriptionID, at now: Instant) {
    guard let topic = topicOf.removeValue(forKey: id), var state = topics[topic] else { return }
    state.subscribers.remove(id)
    topics[topic] = state.subscribers.isEmpty ? nil : state
    if state.subscribers.isEmpty, case .open = phase {
      enqueue(.unsubscribe, RealtimeFrame("unsubscribe", [("topic", .text(topic))]))
    }
    settle(at: now)
  }

  /// Sends a frame and answers with the reply. Nothing is kept for later: without a connection it fails.
  mutating func request(_ id: RequestID, _ frame: RealtimeFrame, at now: Instant) {
    guard case .open = phase, queue.count < Self.queueLimit else {
      return actions.append(.answer(id, .failure(.unreachable(.noConnection))))
    }
    enqueue(.request(id), frame)
    settle(at: now)
  }

  mutating func linkOpened(_ link: LinkID, at now: Instant) {
    guard phase == .connecting(link) else { return actions.append(.close(link)) }
    phase = .open(link, since: now)
    nextHeartbeat = now + Self.heartbeatInterval
    frameCount = 0
    // It may have been renewed while the link was being opened.
    if let credentials { renewLink(with: credentials) }
    for topic in topics.keys.sorted() { ask(topic, Array(topics[topic]!.subscribers)) }
    settle(at: now)
  }

  mutating func linkEnded(_ link: LinkID, _ end: LinkEnd, at now: Instant) {
    switch phase {
    case .connecting(link): break
    case .open(link, let since):
      if now - since >= Self.steadyTime { attempts = 0 }
    default: return
    }
    forgetLink(.connectionLost)
    phase = .idle
    retreat(end, at: now)
    settle(at: now)
  }

  mutating func received(_ link: LinkID, _ text: String, at now: Instant) {
    guard case .open(link, _) = phase, let frame = ReceivedFrame(text) else { return }
    switch frame.content {
    case .heartbeat: break
    case .event(let topic, let name):
      for id in (topics[topic]?.subscribers ?? []).sorted() { deliver(id, .event(name: name, frame.bytes)) }
    case .ended(let topic, let reason): end(topic, RealtimeEnd(reason: reason))
    case .reply(let id):
      if let purpose = inFlight.removeValue(forKey: id)?.purpose { replied(purpose, frame.bytes) }
    case .error(let id, let failure):
      if let id, let purpose = inFlight.removeValue(forKey: id)?.purpose {
        refused(purpose, failure, at: now)
      }
    }
    settle(at: now)
  }

  mutating func handleTimeout(at now: Instant) {
    if case .open(let link, _) = phase {
      if inFlight.values.contains(where: { $0.deadline <= now }) {
        // A server that does not answer is not there, whatever its kernel acknowledges.
        dropLink(.timedOut)
        retreat(.failed, at: now)
        return settle(at: now)
      }
      if now >= nextHeartbeat {
        actions.append(.send(link, RealtimeFrame("heartbeat").text(id: nil)))
        nextHeartbeat = now + Self.heartbeatInterval
      }
      for (topic, state) in topics.sorted(by: { $0.key < $1.key })
      where state.retry.map({ $0 <= now }) == true {
        topics[topic]!.retry = nil
        ask(topic, Array(state.subscribers))
      }
    }
    settle(at: now)
  }

  /// When `handleTimeout` has something to do.
  var nextDeadline: Instant? {
    var deadlines: [Instant] = []
    switch phase {
    case .waiting(let until): deadlines.append(until)
    case .open:
      deadlines.append(nextHeartbeat)
      deadlines += inFlight.values.map(\.deadline)
      deadlines += topics.values.compactMap(\.retry)
      if let credentials, renewing != credentials.accessToken { deadlines.append(credentials.renewal) }
      if let emptySince { deadlines.append(emptySince + Self.linger) }
    case .idle, .connecting, .blocked: break
    }
    return deadlines.min()
  }

  // MARK: Steps

  /// Brings the phase in line with what is wanted, and sends what may be sent.
  private mutating func settle(at now: Instant) {
    emptySince = topics.isEmpty ? emptySince ?? now : nil
    switch phase {
    case .idle:
      if !topics.isEmpty, let credentials, let device = credentials.device {
        phase =
          device.isRevoked ? .blocked : .waiting(until: now + (attempts == 0 ? .zero : backoff(least: .zero)))
        settle(at: now)
      }
    case .waiting(let until):
      if topics.isEmpty || credentials?.device == nil {
        phase = .idle
      } else if until <= now, let credentials {
        linkCount += 1
        attempts += 1
        phase = .connecting(linkCount)
        linkToken = credentials.accessToken
        actions.append(.connect(linkCount, credentials))
      }
    case .open(let link, _):
      if let emptySince, now - emptySince >= Self.linger {
        dropLink(.connectionLost)
        attempts = 0
        return
      }
      if let credentials, now >= credentials.renewal, renewing != credentials.accessToken {
        renewing = credentials.accessToken
        actions.append(.renewToken(used: credentials.accessToken))
      }
      while inFlight.count < Self.window, !queue.isEmpty {
        let next = queue.removeFirst()
        frameCount += 1
        inFlight[frameCount] = (next.purpose, now + Self.answerPatience)
        actions.append(.send(link, next.frame.text(id: frameCount)))
      }
    case .connecting, .blocked: break
    }
  }

  /// What follows from the end of a link; the phase is `idle`.
  private mutating func retreat(_ end: LinkEnd, at now: Instant) {
    guard let credentials else { return }
    var least = TimeDelta.zero
    switch end {
    case .closed(4_403, _), .refused(_, .deviceRevoked?): return revoked(credentials)
    case .closed(4_401, "device_not_enrolled"), .refused(412, _), .refused(_, .deviceNotEnrolled?):
      if let device = credentials.device { actions.append(.enrol(device, userId: credentials.userId)) }
      least = .seconds(20)
    case .closed(4_401, _), .refused(401, _):
      renewing = credentials.accessToken
      actions.append(.renewToken(used: credentials.accessToken))
      least = .seconds(10)
    case .refused(403, _):
      // Over TLS the refusal has no body: a renewal tells whether the session is over.
      actions.append(.renewToken(used: credentials.accessToken))
      least = .seconds(5)
    case .closed(1_013, _), .refused(429, _), .refused(503, _): least = .seconds(5)
    case .refused, .failed, .closed: break
    }
    phase = .waiting(until: now + backoff(least: least))
  }

  private mutating func revoked(_ credentials: Credentials) {
    if let device = credentials.device { actions.append(.markRevoked(device, userId: credentials.userId)) }
    endAll(.deviceRevoked)
    phase = .blocked
    // The session that enrolled the device is over with it; a renewal tells.
    actions.append(.renewToken(used: credentials.accessToken))
  }

  /// Doubles with each attempt from half a second to half a minute, and is between half of that and all of it.
  private mutating func backoff(least: TimeDelta) -> TimeDelta {
    let whole = max(least, min(.seconds(30), .milliseconds(500) * (1 << min(max(0, attempts - 1), 6))))
    return whole.jittered(random.next())
  }

  /// Closes the link, if there is one; the phase is `idle` then.
  private mutating func dropLink(_ fault: NetworkFault) {
    switch phase {
    case .connecting(let link), .open(let link, _):
      actions.append(.close(link))
      forgetLink(fault)
    case .idle, .waiting, .blocked: break
    }
    phase = .idle
  }

  private mutating func forgetLink(_ fault: NetworkFault) {
    let purposes = inFlight.sorted { $0.key < $1.key }.map(\.value.purpose) + queue.map(\.purpose)
    inFlight = [:]
    queue = []
    nextHeartbeat = .distantFuture
    for case .request(let id) in purposes { actions.append(.answer(id, .failure(.unreachable(fault)))) }
    for topic in topics.keys.sorted() {
      if topics[topic]!.isJoined {
        for id in topics[topic]!.subscribers.sorted() { deliver(id, .interrupted) }
      }
      topics[topic]!.isJoined = false
      topics[topic]!.retry = nil
    }
  }

  /// Before all else: the old token may be over any moment.
  private mutating func renewLink(with new: Credentials) {
    guard new.accessToken != linkToken else { return }
    linkToken = new.accessToken
    queue.insert(
      Waiting(
        purpose: .renew(token: new.accessToken),
        frame: RealtimeFrame("renew", [("access_token", .text(new.accessToken))])), at: 0)
  }

  private mutating func ask(_ topic: String, _ ids: [SubscriptionID]) {
    enqueue(.subscribe(topic: topic, ids.sorted()), RealtimeFrame("subscribe", [("topic", .text(topic))]))
  }

  private mutating func enqueue(_ purpose: Purpose, _ frame: RealtimeFrame) {
    queue.append(Waiting(purpose: purpose, frame: frame))
  }

  private mutating func deliver(_ id: SubscriptionID, _ item: RealtimeItem) {
    actions.append(.deliver(id, item))
  }

  private mutating func end(_ topic: String, _ reason: RealtimeEnd) {
    for id in (topics.removeValue(forKey: topic)?.subscribers ?? []).sorted() {
      topicOf[id] = nil
      deliver(id, .ended(reason))
    }
  }

  private mutating func endAll(_ reason: RealtimeEnd) {
    for topic in topics.keys.sorted() { end(topic, reason) }
  }

  private mutating func replied(_ purpose: Purpose, _ bytes: [UInt8]) {
    switch purpose {
    case .subscribe(let topic, let ids):
      guard topics[topic] != nil else { return }
      topics[topic]!.isJoined = true
      topics[topic]!.refusals = 0
      for id in ids where topicOf[id] == topic { deliver(id, .joined(bytes)) }
    case .request(let id): actions.append(.answer(id, .success(bytes)))
    case .unsubscribe, .renew: break
    }
  }

  private mutating func refused(_ purpose: Purpose, _ failure: ServerFailure, at now: Instant) {
    switch purpose {
    case .request(let id): actions.append(.answer(id, .failure(.server(failure))))
    case .subscribe(let topic, _):
      guard let state = topics[topic] else { return }
      guard failure.retry == .yes else { return end(topic, RealtimeEnd(failure)) }
      topics[topic]!.refusals += 1
      let asked = failure.retryAfter.map { TimeDelta.seconds(Double($0.components.seconds) + 1) } ?? .zero
      let own = TimeDelta.seconds(1) * (1 << min(state.refusals, 5))
      topics[topic]!.retry = now + max(asked, own)
    case .renew(let token):
      // Over already: get another. Anything else, such as another session's: open a socket with it.
      if failure.status == 401 {
        renewing = token
        actions.append(.renewToken(used: token))
      } else {
        dropLink(.connectionLost)
      }
    case .unsubscribe: break
    }
  }
}
