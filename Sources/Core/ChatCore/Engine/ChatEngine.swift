import PalbeMLS
import PalbeUnits

/// All chats of one device, without IO: commands, answers and rows in, requests and events out.
///
///     var engine = try ChatEngine.open(configuration, storage: storage, random: random, at: now)
///     engine.start(at: now)
///     let chat = try engine.directChat(with: peer, at: now)
///     let id = try engine.send(.text(TextBody("hello")), to: chat, at: now)
///     while let request = engine.pollRequest() { … }        // carried by the shell; answers come back by handle(_:at:)
///     while let event = engine.pollEvent() { … }
///
/// What it keeps of a message, of a commit and of its own progress is one transaction of the storage, always before the
/// server is told: whenever the process ends, opening goes on from there (section 3 #1, #3, #17). When storage refuses,
/// the engine says so and does nothing more until it is opened again.
///
/// It has one caller at a time.
package struct ChatEngine: ~Copyable {
  package let configuration: EngineConfiguration
  let storage: any MLSStorage
  var random: RandomSource
  let client: MLSClient
  var device: DeviceRecord
  /// When the call that is being worked on was made.
  var now: ChatTime

  var chats: [ChatID: Chat] = [:]
  var byGroup: [GroupID: ChatID] = [:]
  var byGroupID: [[UInt8]: ChatID] = [:]
  var byPeer: [UserID: ChatID] = [:]
  /// Orders messages and operations across restarts.
  var nextOrder: UInt64 = 1
  var useCount: UInt64 = 0

  var flights: [RequestID: Flight] = [:]
  var nextRequest: UInt64 = 1
  var requests = Outgoing<EngineRequest>()
  var events = Outgoing<EngineEvent>()
  var timers: [EngineTimer: Instant] = [:]
  var queue = QueueState()
  var isStarted = false
  var isConnected = false
  /// Set for good once storage refused.
  var isStopped = false
  /// The server forgot this device once already.
  var hasEnrolledAgain = false
  var isEnrolling = false
  /// Groups of the user that this device is not in.
  var strangers: Set<GroupID> = []

  init(
    _ configuration: EngineConfiguration, _ storage: any MLSStorage, _ random: RandomSource,
    _ client: MLSClient, _ device: DeviceRecord, _ now: ChatTime
  ) {
    (self.configuration, self.storage, self.random) = (configuration, storage, random)
    (self.client, self.device, self.now) = (client, device, now)
  }

  var me: UserID { configuration.me }
  /// This device.
  package var deviceName: DeviceName { device.name }
  package var isEnrolled: Bool { device.standing == .enrolled }
  /// True once storage refused.
  package var hasStopped: Bool { isStopped }
  /// Requests are made only while this holds.
  var isReady: Bool { isStarted && !isStopped && device.standing == .enrolled }

  // MARK: Input

  /// Begins to talk to the server, enrolling first where it must; the user is signed in. Harmless twice; after `suspend` it
  /// goes on.
  package mutating func start(at now: ChatTime) {
    run(at: now) { (engine) throws(MLSStorageError) in
      guard !engine.isStarted, engine.device.standing != .revoked else { return }
      engine.isStarted = true
      if engine.device.standing == .new { try engine.enrol() } else { try engine.goOn() }
    }
  }

  /// Takes what came.
  package mutating func handle(_ input: EngineInput, at now: ChatTime) {
    run(at: now) { (engine) throws(MLSStorageError) in
      switch input {
      case .command(let id, let command): try engine.carryOut(command, id)
      case .response(let id, .success(let answer)): try engine.answer(id, .success(answer.bounded))
      case .response(let id, .failure(let refusal)): try engine.answer(id, .failure(refusal.bounded))
      case .rows(let rows, let hasMore): try engine.take(rows.map(\.bounded), hasMore: hasMore)
      case .live(let event): try engine.take(event.bounded)
      case .connection(let isUp): try engine.connection(isUp: isUp)
      }
    }
  }

  /// Does what is due.
  package mutating func handleTimeout(at now: ChatTime) {
    run(at: now) { (engine) throws(MLSStorageError) in try engine.runTimers() }
  }

  /// When `handleTimeout` wants to be called next.
  package var nextDeadline: Instant? { isStopped ? nil : timers.values.min() }

  /// The next request to carry.
  package mutating func pollRequest() -> EngineRequest? { requests.next() }
  /// The next thing to tell.
  package mutating func pollEvent() -> EngineEvent? { events.next() }

  mutating func run(
    at now: ChatTime, _ body: (inout ChatEngine) throws(MLSStorageError) -> Void
  ) {
    guard !isStopped else { return }
    self.now = now
    do throws(MLSStorageError) { try body(&self) } catch { stop(error) }
  }

  /// Runs what a caller asked for and waits for.
  mutating func perform<Value>(
    at now: ChatTime, _ body: (inout ChatEngine) throws(EngineError) -> Value
  ) throws(EngineError) -> Value {
    guard !isStopped else { throw .stopped }
    self.now = now
    do throws(EngineError) { return try body(&self) } catch {
      if case .storage(let fault) = error { stop(fault) }
      throw error
    }
  }

  mutating func stop(_ fault: MLSStorageError) {
    isStopped = true
    requests.removeAll()
    flights.removeAll()
    timers.removeAll()
    events.append(.storageFailed(fault))
  }

  /// Everything that waits for the server goes on.
  mutating func goOn() throws(MLSStorageError) {
    fetchQueue()
    acknowledge()
    checkKeyPackages()
    if !strangers.isEmpty, timers[.strangers] == nil {
      timers[.strangers] = now.instant + configuration.housekeepingWait * 3
    }
    for id in chats.keys.sorted() {
      guard let chat = chats[id] else { continue }
      switch chat.head.standing {
      // The process may have ended before all of an end was done.
      case .left, .removed: try ended(chat, [])
      case .draft where chat.operations.isEmpty && chat.outbox.contains(where: { $0.failure == nil }):
        // Its founding failed, and what waits was not told: it is tried again.
        try load(chat)
        var transaction = MLSTransaction()
        beginFounding(chat, &transaction)
        try storage.apply(transaction)
        try advance(chat)
      default: try advance(chat)
      }
    }
  }

  /// Whatever a chat can do now.
  mutating func advance(_ chat: Chat) throws(MLSStorageError) {
    try advanceOperations(of: chat)
    try advanceSending(in: chat)
    wantUploads(in: chat)
    lookAtView(of: chat)
    tellRead(in: chat)
  }

  // MARK: Chats

  /// All chats, drafts among them.
  package var allChats: [ChatID] { chats.keys.sorted() }
  /// A chat's head.
  package func head(of id: ChatID) -> ChatHead? { chats[id]?.head }
  /// The chat with a name of the server's.
  package func chat(_ group: GroupID) -> ChatID? { chat(named: group)?.id }

  /// Names a chat in all the indices.
  mutating func index(_ chat: Chat) {
    chats[chat.id] = chat
    if let group = chat.head.group { byGroup[group] = chat.id }
    if let groupID = chat.head.groupID { byGroupID[groupID] = chat.id }
    if let peer = chat.peer(of: me) { byPeer[peer] = chat.id }
  }

  /// The chat's group, from storage where it was not used lately; nil when it has none.
  mutating func group(of chat: Chat) throws(MLSStorageError) -> Chat.Group? {
    touch(chat)
    if let group = chat.group { return group }
    guard let id = chat.head.groupID,
      let stored = try StoredGroup.load(id, client: client, from: storage)
    else { return nil }
    let group = Chat.Group(stored)
    chat.group = group
    return group
  }

  /// Notes a use, and lets go of what was not used for longest: all of it is in storage.
  func release(besides chat: Chat) {
    let loaded = chats.values.filter { $0.group != nil || $0.transcript != nil }
    guard loaded.count > configuration.loadedChats else { return }
    for other in loaded.sorted(by: { $0.lastUse < $1.lastUse }).prefix(loaded.count / 4) where other !== chat
    {
      other.group = nil
      other.transcript = nil
    }
  }

  mutating func touch(_ chat: Chat) {
    useCount += 1
    chat.lastUse = useCount
    if useCount % 16 == 0 { release(besides: chat) }
  }

  /// Stores a change of the head alone.
  func store(_ chat: Chat) throws(MLSStorageError) {
    var transaction = MLSTransaction()
    transaction.put(chat.head, RecordKey.chat(chat.id))
    try storage.apply(transaction)
  }

  mutating func changed(_ chat: Chat) { events.append(.chatChanged(chat.id)) }
}

/// What waits to be polled.
struct Outgoing<Element> {
  private var elements: [Element] = []
  private var taken = 0

  mutating func append(_ element: Element) { elements.append(element) }
  mutating func next() -> Element? {
    guard taken < elements.count else {
      elements.removeAll(keepingCapacity: true)
      taken = 0
      return nil
    }
    defer { taken += 1 }
    return elements[taken]
  }
  mutating func removeAll() {
    elements.removeAll()
    taken = 0
  }
}
