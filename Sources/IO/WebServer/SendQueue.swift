/// Messages on their way out, bounded in bytes. A queue that overflows never sends again: its peer is too
/// slow.
struct SendQueue: Sendable {
  /// What the owner of a connection has to do after a change.
  enum Outcome { case queued, ignored, overflowed }

  /// A close frame to be sent after the messages.
  struct Close: Sendable {
    var code: UInt16
    var reason: String
  }

  let byteLimit: Int
  private(set) var byteCount = 0
  private(set) var isEnded = false
  private(set) var hasOverflowed = false
  private(set) var close: Close?
  private var messages: [WebSocketMessage] = []
  private var first = 0

  /// What a message costs besides its bytes, so that empty ones are bounded too.
  private static let messageOverhead = 64

  init(byteLimit: Int) { self.byteLimit = byteLimit }

  mutating func append(_ message: WebSocketMessage) -> Outcome {
    guard !isEnded, !hasOverflowed, close == nil else { return .ignored }
    let cost = message.byteCount + Self.messageOverhead
    guard cost <= byteLimit - byteCount else {
      hasOverflowed = true
      clear()
      return .overflowed
    }
    byteCount += cost
    messages.append(message)
    return .queued
  }

  /// - Parameter discarding: forgets the messages that wait.
  mutating func requestClose(_ request: Close, discarding: Bool = false) -> Outcome {
    guard !isEnded, !hasOverflowed, close == nil else { return .ignored }
    close = request
    if discarding { clear() }
    return .queued
  }

  /// The oldest message, taken out.
  mutating func next() -> WebSocketMessage? {
    guard first < messages.count else { return nil }
    let message = messages[first]
    byteCount -= message.byteCount + Self.messageOverhead
    first += 1
    if first == messages.count {
      // A few places stay: whoever is sent a message now and then needs no allocation for it.
      messages.removeAll(keepingCapacity: messages.capacity <= 16)
      first = 0
    } else if first >= 64, first * 2 > messages.count {
      messages.removeFirst(first)
      first = 0
    }
    return message
  }

  var isEmpty: Bool { first == messages.count }

  /// The connection is gone: nothing more is queued.
  mutating func end() {
    isEnded = true
    clear()
  }

  private mutating func clear() {
    messages.removeAll()
    first = 0
    byteCount = 0
  }
}
