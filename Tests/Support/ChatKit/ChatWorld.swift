import PalbeBackendCore
import PalbeBackendKit
import PalbeChatCore
import PalbeCrypto
import PalbeMLS
import PalbeUnits
import PalbeWire

/// What the network does to requests, answers and events.
package struct NetworkConditions: Sendable {
  package var latency: ClosedRange<Int> = 5...40
  /// Of a request or its answer, in thousandths.
  package var loss = 0
  /// That the server gets a request twice.
  package var duplication = 0
  /// After which a request counts as lost, in milliseconds.
  package var timeout = 2_000

  package init() {}
}

/// Users with devices, a server and the network between, in virtual time: everything follows from the seed.
package final class ChatWorld {
  package let seed: UInt64
  package var network = NetworkConditions()
  package let registry: CrashRegistry
  package private(set) var phones: [Phone] = []
  package private(set) var now: ChatTime
  var backend: Backend<MemoryStore>
  package var random: RandomSource
  private var agenda: [Entry] = []
  private var nextEntry = 0
  private var nextConnection: UInt64 = 1
  private var owners: [UInt64: Phone] = [:]
  /// Set by a test that looks at requests.
  package var traces = false
  package var onRequest: ((Phone, ServerRequest) -> Void)?
  /// A request that this returns true for is lost on its way.
  package var losesRequest: ((Phone, ServerRequest) -> Bool)?
  /// A request that this returns true for is carried out, and its answer lost.
  package var losesAnswer: ((Phone, ServerRequest) -> Bool)?

  /// What becomes of rows on their way to a device.
  package var tampers: ((Phone, PalbeChatCore.QueueRow) -> PalbeChatCore.QueueRow)?
  /// What becomes of an answer on its way to a device.
  package var answers: ((Phone, ServerRequest, ServerAnswer) -> Result<ServerAnswer, ServerRefusal>)?
  /// What the server says instead of looking at a request.
  package var refuses: ((Phone, ServerRequest) -> ServerRefusal?)?
  /// What the server took, and what must not happen and did.
  package internal(set) var ledger = Ledger()
  /// Messages that the server refuses for good, until somebody thinks better of it.
  var refused: Set<ClientMessageID> = []
  /// How the bytes of files go up, by the shell's names for them.
  var uploads: [String: Upload] = [:]
  /// Until then the server answers nothing.
  var outage: Instant = .zero

  private struct Entry {
    let at: Instant
    let number: Int
    /// Does not keep the world awake.
    let isBackground: Bool
    let run: (ChatWorld) -> Void
  }

  package init(seed: UInt64 = 1, registry: CrashRegistry = CrashRegistry()) throws {
    self.seed = seed
    self.registry = registry
    now = ChatTime(
      wall: WallTime(microseconds: 1_800_000_000_000_000), instant: Instant(nanoseconds: 1_000_000_000),
      boot: 1)
    random = RandomSource(seed: seed)
    backend = try Backend(
      store: MemoryStore(), random: RandomSource(seed: seed &+ 1),
      at: ServerTime(wall: now.wall, instant: now.instant))
  }

  var serverTime: ServerTime { ServerTime(wall: now.wall, instant: now.instant) }

  /// Now, by a device's clock.
  package func time(of phone: Phone) -> ChatTime {
    var time = now
    time.wall = time.wall + phone.clock
    return time
  }

  /// Something on the device's socket that no server core sent.
  package func tell(_ event: LiveEvent, to phone: Phone) {
    phone.engine?.handle(.live(event), at: time(of: phone))
    pump(phone)
  }

  /// Sets a device's clock, which the user may do at any time.
  package func setClock(_ phone: Phone, ahead: TimeDelta) {
    phone.clock = ahead
    phone.engine?.handleTimeout(at: time(of: phone))
    pump(phone)
  }

  // MARK: Devices

  /// A device with a fresh disk, running and enrolling.
  @discardableResult
  package func addPhone(
    _ name: String, of user: UserID? = nil, trap: CrashPoint? = nil, hunted: CrashPoint? = nil,
    _ configure: (inout EngineConfiguration) -> Void = { _ in }
  ) -> Phone {
    let user = user ?? UserID(at: now.wall, using: &random)
    var configuration = EngineConfiguration(me: user)
    configuration.keyPackageCount = 6
    configuration.keyPackageFloor = 3
    configure(&configuration)
    let phone = Phone(
      user: user, name: name, storage: CrashingStorage(registry: registry), configuration: configuration)
    phones.append(phone)
    if let trap { phone.storage.arm(trap.kind, trap.moment) }
    if let hunted { phone.storage.arm(lasting: hunted) }
    start(phone)
    return phone
  }

  /// Begins a process over the device's disk.
  package func start(_ phone: Phone) {
    guard phone.engine == nil else { return }
    phone.life += 1
    do throws(EngineError) {
      phone.engine = try ChatEngine.open(
        phone.configuration, storage: phone.storage, random: RandomSource(seed: random.next()),
        at: time(of: phone))
    } catch {
      // The process ended in opening: it is begun again.
      guard case .storage(.unusable) = error else {
        return ledger.complain("\(phone.name) cannot be opened: \(error)")
      }
      phone.crashes += 1
      schedule(after: 100) { $0.start(phone) }
      return
    }
    phone.device = phone.engine?.deviceName
    phone.beginMirror()
    // Bytes that no message waits for any more.
    let known = Set((phone.engine?.pendingUploads() ?? []).map(\.spool))
    phone.spools.formIntersection(known)
    phone.engine!.start(at: time(of: phone))
    pump(phone)
    if phone.engine?.isEnrolled == true { connect(phone) }
  }

  /// Ends the process, as kill -9 does.
  package func kill(_ phone: Phone) {
    dropSocket(phone, reconnects: false)
    phone.engine = nil
  }

  /// Ends the process and begins another.
  package func restart(_ phone: Phone) {
    kill(phone)
    start(phone)
  }

  /// Cuts a device off, or lets it back.
  package func setReachable(_ phone: Phone, _ isReachable: Bool) {
    phone.isReachable = isReachable
    if !isReachable { dropSocket(phone, reconnects: false) } else { connect(phone) }
  }

  // MARK: What a user does

  /// Uses a device's engine; what it asks for goes out.
  @discardableResult
  package func use<Value>(
    _ phone: Phone, _ body: (inout ChatEngine, ChatTime) throws(EngineError) -> Value
  ) throws(EngineError) -> Value {
    guard phone.engine != nil else { throw .stopped }
    defer { pump(phone) }
    return try body(&phone.engine!, time(of: phone))
  }

  @discardableResult
  package func send(_ text: String, from phone: Phone, to chat: ChatID) throws(EngineError) -> ClientMessageID
  {
    try use(phone) { (engine, now) throws(EngineError) in
      try engine.send(.text(TextBody(text)), to: chat, at: now)
    }
  }

  package func directChat(_ phone: Phone, with user: UserID) throws(EngineError) -> ChatID {
    try use(phone) { (engine, now) throws(EngineError) in try engine.directChat(with: user, at: now) }
  }

  package func groupChat(
    _ phone: Phone, _ users: [UserID], title: String? = nil
  ) throws(EngineError) -> ChatID {
    try use(phone) { (engine, now) throws(EngineError) in
      try engine.groupChat(title: title, members: users, at: now)
    }
  }

  /// Begins a command; how it ends is `result(of:)`.
  @discardableResult
  package func command(_ phone: Phone, _ command: EngineCommand) -> CommandID {
    let id = CommandID(phone.nextCommand)
    phone.nextCommand += 1
    phone.engine?.handle(.command(id, command), at: time(of: phone))
    pump(phone)
    return id
  }

  package func result(of id: CommandID, _ phone: Phone) -> CommandResult? {
    for case .finished(id, let result) in phone.events { return result }
    return nil
  }

  /// The chat of a device that the server knows by this name.
  package func chat(_ phone: Phone, _ group: GroupID?) -> ChatID? { group.flatMap { phone.engine?.chat($0) } }
  package func head(_ phone: Phone, _ chat: ChatID) -> ChatHead? { phone.engine?.head(of: chat) }

  /// The rows of a chat, the oldest first.
  package func rows(_ phone: Phone, _ chat: ChatID) -> [Row] {
    guard phone.isRunning, var transcript = try? phone.engine!.transcript(of: chat, at: time(of: phone))
    else {
      return []
    }
    return (try? transcript.page(limit: 2_000).rows) ?? []
  }

  /// The texts of a chat, the oldest first.
  package func texts(_ phone: Phone, _ chat: ChatID) -> [String] { rows(phone, chat).compactMap(\.text) }

  package func summary(_ phone: Phone, _ chat: ChatID) -> ChatSummary? {
    guard phone.engine != nil else { return nil }
    return try? phone.engine!.transcript(of: chat, at: time(of: phone)).summary
  }

  package func setTyping(_ isOn: Bool, _ phone: Phone, _ chat: ChatID) {
    phone.engine?.setTyping(isOn, in: chat, at: time(of: phone))
    pump(phone)
  }

  /// The key that a call in an epoch begins with; nil where it is not known any more.
  package func callKey(_ phone: Phone, _ chat: ChatID, _ epoch: UInt64) -> [UInt8]? {
    guard phone.isRunning else { return nil }
    do {
      let secret = try phone.engine!.exportSecret(
        label: "palbe call media key", length: 32, of: chat, epoch: epoch, at: time(of: phone))
      return [UInt8](secret.span)
    } catch { return nil }
  }

  /// Whose devices said that the chat's timer holds there.
  package func timerAcknowledgedBy(_ phone: Phone, _ chat: ChatID) -> [UserID] {
    guard phone.isRunning else { return [] }
    return (try? phone.engine!.transcript(of: chat, at: time(of: phone)).timerAcknowledgedBy()) ?? []
  }

  // MARK: Network

  /// Takes what an engine has to say.
  func pump(_ phone: Phone) {
    guard phone.engine != nil else { return }
    while let event = phone.engine!.pollEvent() { take(event, phone) }
    if phone.engine?.hasStopped == true {
      phone.crashes += 1
      kill(phone)
      schedule(after: 50) { $0.start(phone) }
      return
    }
    while let request = phone.engine!.pollRequest() { carry(request, phone) }
  }

  private func take(_ event: EngineEvent, _ phone: Phone) {
    phone.events.append(event)
    if traces {
      print("\(now.instant.nanoseconds / 1_000_000) \(phone.name) \(String(describing: event).prefix(200))")
    }
    switch event {
    case .chatChanged(let chat):
      switch phone.engine?.head(of: chat)?.standing {
      case .removed, .left, .diverged, .adopting, .resetting:
        phone.unsure[chat] = ledger.taken.count
        phone.isOut.insert(chat)
      case .active where phone.isOut.remove(chat) != nil: phone.unsure[chat] = ledger.taken.count
      default: break
      }
    case .transcript(let chat, let changes):
      for case .inserted(let row) in changes where row.kind == .system(.historyGap) {
        phone.unsure[chat] = ledger.taken.count
      }
      for problem in phone.follow(changes, in: chat) { ledger.complain("\(phone.name): \(problem)") }
    case .storageFailed(let fault) where fault != .unusable:
      ledger.complain("\(phone.name) stopped: \(fault)")
    case .enrolled: connect(phone)
    case .uploadWanted(let chat, let group, let message): upload(message, in: chat, to: group, phone)
    case .uploadOver(_, _, let spool): phone.spools.remove(spool)
    default: break
    }
  }

  func happens(_ thousandths: Int) -> Bool { Int.random(in: 0..<1_000, using: &random) < thousandths }
  func latency() -> Int { Int.random(in: network.latency, using: &random) }

  private func carry(_ request: EngineRequest, _ phone: Phone) {
    onRequest?(phone, request.request)
    if traces {
      print(
        "\(now.instant.nanoseconds / 1_000_000) \(phone.name) asks \(String(describing: request.request).prefix(120))"
      )
    }
    if case .send(let group, let message) = request.request {
      noteSaid(message.id, phone, in: group)
      phone.lastSent = (group, message)
    }
    let life = phone.life
    let connection = phone.connection
    let isLost = happens(network.loss) || losesRequest?(phone, request.request) == true
    guard phone.isReachable, !isLost else {
      return schedule(after: network.timeout) {
        $0.deliver(.failure(.unreachable), to: request.id, phone, life)
      }
    }
    let losesAnswer = happens(network.loss) || losesAnswer?(phone, request.request) == true
    schedule(after: latency()) { world in
      let result = world.ask(request, phone, connection)
      let isGone = losesAnswer || !phone.isReachable
      world.schedule(after: isGone ? world.network.timeout : world.latency()) {
        $0.deliver(isGone ? .failure(.unreachable) : result, to: request.id, phone, life)
      }
    }
    if happens(network.duplication) {
      schedule(after: latency() * 5) { _ = $0.ask(request, phone, connection) }
    }
  }

  private func ask(
    _ request: EngineRequest, _ phone: Phone, _ connection: UInt64?
  ) -> Result<ServerAnswer, ServerRefusal> {
    if let refusal = refuses?(phone, request.request) { return .failure(refusal) }
    if now.instant < outage { return .failure(.unavailable) }
    if case .send(_, let message) = request.request, refused.contains(message.id) {
      return .failure(.other("message_too_large"))
    }
    let live = connection.flatMap { owners[$0] === phone ? ConnectionID($0) : nil }
    guard let mapped = ServerMapping.request(request.request, live) else { return .failure(.unreachable) }
    var caller = self.caller(phone)
    if case .enrol = request.request { caller = Caller(user: phone.user, device: nil) }
    let key = request.idempotencyKey.map {
      IdempotencyKey(key: $0, digest: Array("\(request.request.hashValue)".utf8))
    }
    defer { publish() }
    do throws(BackendFailure) {
      let answer = ServerMapping.answer(
        try backend.handle(mapped, from: caller, idempotencyKey: key, at: serverTime))
      if let name = phone.device {
        ledger.note(request.request, answer, from: name, at: now.wall) { device in
          phones.first { $0.device?.device == device }?.user
        }
      }
      if let tampers, case .queue(let rows, let hasMore) = answer {
        return .success(.queue(rows.map { tampers(phone, $0) }, hasMore: hasMore))
      }
      return answers?(phone, request.request, answer) ?? .success(answer)
    } catch { return .failure(ServerMapping.refusal(error)) }
  }

  /// What a device means to say.
  func noteSaid(_ envelope: Envelope, _ phone: Phone, _ chat: ChatID) { ledger.says(envelope, phone, chat) }

  /// A message goes out: it must wait under its name in its sender's transcript.
  private func noteSaid(_ id: ClientMessageID, _ phone: Phone, in group: GroupID) {
    guard ledger.said[id]?.isFile ?? true, let chat = phone.engine?.chat(group) else { return }
    for envelope in phone.unconfirmed(chat) { ledger.says(envelope, phone, chat) }
  }

  private func deliver(
    _ result: Result<ServerAnswer, ServerRefusal>, to request: RequestID, _ phone: Phone, _ life: Int
  ) {
    guard phone.life == life, phone.engine != nil else { return }
    phone.engine!.handle(.response(request, result), at: time(of: phone))
    pump(phone)
  }

  // MARK: The socket

  func connect(_ phone: Phone) {
    let life = phone.life
    schedule(after: latency() * 2) { world in
      guard phone.life == life, phone.engine != nil, phone.connection == nil, phone.isReachable else {
        return
      }
      let id = world.nextConnection
      world.nextConnection += 1
      world.owners[id] = phone
      phone.connection = id
      phone.engine!.handle(.connection(isUp: true), at: world.time(of: phone))
      world.pump(phone)
      world.beat(id)
    }
  }

  /// Ends the socket; the device is told, and opens another.
  package func dropSocket(_ phone: Phone, reconnects: Bool = true) {
    guard let id = phone.connection else { return }
    phone.connection = nil
    owners[id] = nil
    backend.connectionClosed(ConnectionID(id))
    publish()
    phone.engine?.handle(.connection(isUp: false), at: time(of: phone))
    pump(phone)
    if reconnects { connect(phone) }
  }

  private func beat(_ id: UInt64) {
    schedule(after: 25_000, isBackground: true) { world in
      guard let phone = world.owners[id], phone.engine != nil else { return }
      _ = try? world.backend.handle(
        .heartbeat(ConnectionID(id)), from: world.caller(phone), at: world.serverTime)
      world.beat(id)
    }
  }

  func publish() {
    while let event = backend.pollEvent() {
      if case .subscriptionEnded(let connection, .device, .deviceRevoked) = event,
        let phone = owners[connection.rawValue], phone.isRunning
      {
        phone.engine?.handle(.live(.deviceRevoked), at: time(of: phone))
        pump(phone)
      }
      guard case .publish(let topic, let content) = event else { continue }
      for connection in backend.subscribers(of: topic) {
        guard let phone = owners[connection.rawValue], let live = live(content, topic) else { continue }
        let due = max(phone.socketTime, now.instant + .milliseconds(latency()))
        phone.socketTime = due
        schedule(at: due) { world in
          guard phone.connection == connection.rawValue, phone.engine != nil else { return }
          phone.engine!.handle(.live(live), at: world.time(of: phone))
          world.pump(phone)
        }
      }
    }
  }

  private func live(_ event: RealtimeEvent, _ topic: Topic) -> LiveEvent? {
    let group: GroupID? = if case .conversation(let group) = topic { group } else { nil }
    switch (event, group) {
    case (.queueChanged, _): return .queueChanged
    case (.ownRead(let group, let seq), _): return .ownRead(group, seq)
    case (.typing(let user, let device, let isOn), let group?): return .typing(group, user, device, isOn)
    case (.presence(let user, let isOnline), let group?): return .presence(group, user, isOnline: isOnline)
    case (.delivered(let user, let device, let seq), let group?): return .delivered(group, user, device, seq)
    case (.read(let user, let seq), let group?): return .read(group, user, seq)
    default: return nil
    }
  }

  // MARK: Time

  package func schedule(
    after milliseconds: Int, isBackground: Bool = false, _ run: @escaping (ChatWorld) -> Void
  ) {
    schedule(at: now.instant + .milliseconds(milliseconds), isBackground: isBackground, run)
  }

  private func schedule(at instant: Instant, isBackground: Bool = false, _ run: @escaping (ChatWorld) -> Void)
  {
    let entry = Entry(at: instant, number: nextEntry, isBackground: isBackground, run: run)
    nextEntry += 1
    let place = agenda.firstIndex { $0.at > instant } ?? agenda.endIndex
    agenda.insert(entry, at: place)
  }

  private func move(to instant: Instant) {
    guard instant > now.instant else { return }
    now.wall = now.wall + (instant - now.instant)
    now.instant = instant
  }

  /// Does the next thing that is due until an instant; false when there is none.
  private func step(until end: Instant) -> Bool {
    var next = min(agenda.first?.at ?? .distantFuture, backend.nextDeadline)
    var due: Phone?
    for phone in phones {
      guard let time = phone.engine?.nextDeadline, time < next else { continue }
      next = time
      due = phone
    }
    guard next <= end else { return false }
    move(to: next)
    if let due {
      due.engine!.handleTimeout(at: time(of: due))
      pump(due)
    } else if let entry = agenda.first, entry.at <= now.instant {
      agenda.removeFirst()
      entry.run(self)
    } else {
      backend.handleTimeout(at: serverTime)
      publish()
    }
    return true
  }

  /// Lets time go by.
  package func run(for delta: TimeDelta) {
    let end = now.instant + delta
    while step(until: end) {}
    move(to: end)
  }

  /// Nothing is on its way and nobody waits for anything.
  package var isQuiet: Bool {
    !agenda.contains { !$0.isBackground } && phones.allSatisfy { $0.isQuiet }
  }

  /// Lets time go by until everything is done; false when it never is.
  @discardableResult
  package func settle(within limit: TimeDelta = .seconds(600)) -> Bool {
    let end = now.instant + limit
    while !isQuiet { guard step(until: end) else { return isQuiet } }
    return true
  }
}
