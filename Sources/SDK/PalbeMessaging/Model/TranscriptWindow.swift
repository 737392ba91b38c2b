import PalbeChatCore
import PalbeUnits

/// The newest part of a transcript, kept by what is told of it and never by another query (S3-20 to S3-22).
///
///     page (at opening, at paging) ──▶ ┌────────┐
///     inserted, updated, removed ────▶ │ window │ ──▶ messages, in order
///                                      └────────┘
///
/// A place is found by binary search. Confirmed rows stand by the server's order, what is pending behind them in the order
/// it was made, and a row that is confirmed keeps its id and moves to its place (S3-17).
struct TranscriptWindow {
  /// Where a row stands.
  struct Key: Comparable {
    var isPending: Bool
    var number: UInt64

    static func < (left: Key, right: Key) -> Bool {
      left.isPending == right.isPending ? left.number < right.number : right.isPending
    }
  }

  /// As it is shown.
  private(set) var messages: [ChatMessage] = []
  /// Older rows begin before this place; nil: there are none.
  private(set) var earlier: TranscriptPosition?
  /// Rows held at most; what was paged in counts on top of the first so many.
  private(set) var limit: Int
  private var keys: [Key] = []
  private var places: [ClientMessageID: Key] = [:]
  private var nextPending: UInt64 = 0
  private var pendingCount = 0
  /// Answers by the message that they answer, both ways.
  private var answers: [ClientMessageID: Set<ClientMessageID>] = [:]
  private var parents: [ClientMessageID: ClientMessageID] = [:]

  init(limit: Int = 1_000) { self.limit = limit }

  var isEmpty: Bool { messages.isEmpty }

  func contains(_ id: ClientMessageID) -> Bool { places[id] != nil }

  subscript(id: ClientMessageID) -> ChatMessage? {
    guard let key = places[id] else { return nil }
    return messages[index(of: key)]
  }

  /// What is shown and answers this message: its quotes follow it.
  func answers(to id: ClientMessageID) -> Set<ClientMessageID> { answers[id] ?? [] }

  // MARK: Changes

  /// A page as it was read; returns how many rows are new here.
  mutating func merge(_ page: TranscriptPage, _ make: (Row) -> ChatMessage) -> Int {
    earlier = page.earlier
    var count = 0
    for row in page.rows where !contains(row.id) {
      put(row, make(row), at: key(of: row))
      count += 1
    }
    limit = max(limit, messages.count - pendingCount)
    return count
  }

  /// Puts a row where it belongs; one that is older than the window waits to be paged in. Returns whether it is shown.
  mutating func insert(_ row: Row, _ make: (Row) -> ChatMessage) -> Bool {
    if let old = places[row.id] {
      let key = row.position == nil && old.isPending ? old : key(of: row)
      if key == old {
        let place = index(of: key)
        forgetParent(of: row.id)
        messages[place] = make(row)
        noteParent(of: row)
        return true
      }
      remove(row.id)
      put(row, make(row), at: key)
    } else {
      if let position = row.position, let earlier, position < earlier { return false }
      put(row, make(row), at: key(of: row))
    }
    trim()
    return true
  }

  /// Changes a row that is shown; returns whether it is.
  mutating func update(_ row: Row, _ make: (Row) -> ChatMessage) -> Bool {
    contains(row.id) && insert(row, make)
  }

  @discardableResult
  mutating func remove(_ id: ClientMessageID) -> Bool {
    guard let key = places.removeValue(forKey: id) else { return false }
    let place = index(of: key)
    messages.remove(at: place)
    keys.remove(at: place)
    if key.isPending { pendingCount -= 1 }
    forgetParent(of: id)
    return true
  }

  /// Makes every message anew, such as with other names.
  mutating func renew(_ make: (ChatMessage) -> ChatMessage) { messages = messages.map(make) }

  private mutating func trim() {
    let excess = messages.count - pendingCount - limit
    guard excess > 0 else { return }
    for message in messages[..<excess] {
      guard let id = message.contents.reference else { continue }
      places[id] = nil
      forgetParent(of: id)
    }
    messages.removeSubrange(..<excess)
    keys.removeSubrange(..<excess)
    if let first = keys.first, !first.isPending { earlier = TranscriptPosition(rawValue: first.number) }
  }

  // MARK: Places

  private mutating func key(of row: Row) -> Key {
    if let position = row.position { return Key(isPending: false, number: position.rawValue) }
    nextPending += 1
    return Key(isPending: true, number: nextPending)
  }

  /// Where the key stands, or would.
  private func index(of key: Key) -> Int {
    var (low, high) = (0, keys.count)
    // Most of what comes is new, and stands last.
    if let last = keys.last, last < key { return keys.count }
    while low < high {
      let middle = (low + high) / 2
      if keys[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low
  }

  private mutating func put(_ row: Row, _ message: ChatMessage, at key: Key) {
    let place = index(of: key)
    // Two rows at one place cannot be: the newer word counts.
    if place < keys.count, keys[place] == key, let other = messages[place].contents.reference {
      remove(other)
    }
    messages.insert(message, at: place)
    keys.insert(key, at: place)
    places[row.id] = key
    if key.isPending { pendingCount += 1 }
    noteParent(of: row)
  }

  private mutating func noteParent(of row: Row) {
    guard let parent = row.reply?.parent else { return }
    parents[row.id] = parent
    answers[parent, default: []].insert(row.id)
  }

  private mutating func forgetParent(of id: ClientMessageID) {
    guard let parent = parents.removeValue(forKey: id) else { return }
    answers[parent]?.remove(id)
    if answers[parent]?.isEmpty == true { answers[parent] = nil }
  }
}
