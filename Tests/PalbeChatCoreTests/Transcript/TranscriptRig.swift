import PalbeChatCore
import PalbeMLS
import PalbeUnits
import Testing

/// A transcript of one device, its storage and its clocks.
struct TranscriptRig {
  let storage: InMemoryMLSStorage
  var transcript: Transcript
  var limits: TranscriptLimits
  var now: ChatTime
  var seq: Int64 = 0
  private var random: RandomSource

  static let chat: [UInt8] = [7, 7]
  /// This device, another of the same user, and two other people.
  static let me = device(1, 1)
  static let myOther = device(1, 2)
  static let ben = device(2, 1)
  static let cleo = device(3, 1)

  static func user(_ number: UInt8) -> UserID { UserID(bytes: [UInt8](repeating: number, count: 16))! }

  static func device(_ user: UInt8, _ device: UInt8) -> DeviceName {
    DeviceName(user: Self.user(user), device: DeviceID(bytes: [UInt8](repeating: device, count: 16))!)
  }

  init(limits: TranscriptLimits = TranscriptLimits(), seed: UInt64 = 1) throws {
    storage = InMemoryMLSStorage()
    random = RandomSource(seed: seed)
    now = ChatTime(
      wall: WallTime(microseconds: 1_700_000_000_000_000), instant: Instant(nanoseconds: 5_000_000_000_000),
      boot: 1)
    self.limits = limits
    var transaction = MLSTransaction()
    transcript = .create(
      ChatSummary(chat: Self.chat, kind: .group, state: .active, createdAt: now.wall), me: Self.me,
      storage: storage, limits: limits, in: &transaction)
    try storage.apply(transaction)
  }

  mutating func id() -> ClientMessageID { ClientMessageID(at: now.wall, using: &random) }

  mutating func pass(_ seconds: Int) {
    now.wall = now.wall + .seconds(seconds)
    now.instant = now.instant + .seconds(seconds)
  }

  /// One mutation, carried out.
  @discardableResult
  mutating func run<Result>(
    _ body: (inout Transcript, ChatTime, inout MLSTransaction) throws(MLSStorageError) -> Result
  ) throws -> Result {
    var transaction = MLSTransaction()
    let result = try body(&transcript, now, &transaction)
    try storage.apply(transaction)
    return result
  }

  /// What a new process finds.
  mutating func restart() throws {
    transcript = try #require(
      try Transcript.load(Self.chat, me: Self.me, from: storage, limits: limits))
  }

  func envelope(_ id: ClientMessageID, _ content: Content, expiry: Expiry? = nil, fallback: String? = nil)
    -> Envelope
  {
    Envelope(id: id, sentAt: now.wall, content: content, fallback: fallback, expiry: expiry)
  }

  /// A message of somebody at the next number, or at a given one.
  @discardableResult
  mutating func receive(
    _ content: Content, from sender: DeviceName = ben, id: ClientMessageID? = nil, seq: Int64? = nil,
    expiry: Expiry? = nil, fallback: String? = nil
  ) throws -> (id: ClientMessageID, changes: [TranscriptChange]) {
    let id = id ?? self.id()
    self.seq = max(self.seq, seq ?? self.seq + 1)
    let incoming = Incoming(
      seq: seq ?? self.seq, sender: sender, epoch: 3, receivedAt: now, serverAt: now.wall,
      envelope: envelope(id, content, expiry: expiry, fallback: fallback))
    let changes = try run { (transcript, _, transaction) throws(MLSStorageError) in
      try transcript.apply(incoming, in: &transaction)
    }
    return (id, changes)
  }

  @discardableResult
  mutating func text(_ text: String, from sender: DeviceName = ben, seq: Int64? = nil) throws
    -> ClientMessageID
  {
    try receive(.text(TextBody(text)), from: sender, seq: seq).id
  }

  /// Something of ours, before any network.
  @discardableResult
  mutating func send(
    _ content: Content, expiry: Expiry? = nil
  ) throws -> (id: ClientMessageID, changes: [TranscriptChange]) {
    let envelope = envelope(id(), content, expiry: expiry)
    let changes = try run { (transcript, now, transaction) throws(MLSStorageError) in
      try transcript.insertOptimistic(envelope, at: now, in: &transaction)
    }
    return (envelope.id, changes)
  }

  @discardableResult
  mutating func confirm(_ id: ClientMessageID, seq: Int64? = nil) throws -> [TranscriptChange] {
    self.seq = max(self.seq, seq ?? self.seq + 1)
    let seq = seq ?? self.seq
    return try run { (transcript, now, transaction) throws(MLSStorageError) in
      try transcript.confirm(id, seq: seq, epoch: 4, at: now, in: &transaction)
    }
  }

  @discardableResult
  mutating func hide(_ id: ClientMessageID) throws -> [TranscriptChange] {
    try run { (transcript, now, transaction) throws(MLSStorageError) in
      try transcript.hide(id, at: now, in: &transaction)
    }
  }

  @discardableResult
  mutating func markRead(_ seq: Int64) throws -> [TranscriptChange] {
    try run { (transcript, now, transaction) throws(MLSStorageError) in
      try transcript.markRead(upTo: seq, at: now, in: &transaction)
    }
  }

  @discardableResult
  mutating func expire() throws -> [TranscriptChange] {
    try run { (transcript, now, transaction) throws(MLSStorageError) in
      try transcript.expire(at: now, in: &transaction)
    }
  }

  @discardableResult
  mutating func system(_ event: SystemEvent, seq: Int64? = nil) throws -> [TranscriptChange] {
    self.seq = max(self.seq, seq ?? self.seq + 1)
    let seq = seq ?? self.seq
    return try run { (transcript, now, transaction) throws(MLSStorageError) in
      try transcript.addSystem(event, seq: seq, by: Self.ben, at: now, in: &transaction)
    }
  }

  mutating func rows() throws -> [Row] { try transcript.page(limit: .max).rows }
  mutating func texts() throws -> [String?] { try rows().map(\.text) }
  var unread: Int { transcript.summary.unreadCount }
  var preview: MessagePreview? { transcript.summary.lastMessage }

  func row(_ id: ClientMessageID) throws -> Row { try #require(try transcript.row(id)) }
}

extension Content {
  static func text(_ text: String, mentions: [Mention] = []) -> Content {
    .text(TextBody(text, mentions: mentions))
  }
  static func edit(_ target: MessageRef, _ text: String) -> Content { .edit(target: target, TextBody(text)) }
  static func react(_ target: MessageRef, _ emoji: String, off: Bool = false) -> Content {
    .reaction(target: target, emoji: emoji, isRemoved: off)
  }
  static func answer(_ text: String, to parent: MessageRef, quoting quote: ReplyQuote) -> Content {
    .text(TextBody(text, reply: ReplyReference(parent: parent, quote: quote)))
  }
}
