public import Observation
import PalbeChatCore
import PalbeUnits

/// The inbox: every chat that has begun, the one with the latest activity first (S0-18, S3-28).
///
///     List(pb.messaging.chats.all) { chat in Text(chat.title).badge(chat.unreadCount) }
@MainActor @Observable
public final class ChatListStore {
  /// Where a chat stands; the greater is the higher.
  struct Key: Comparable {
    var activity: Int64
    var chat: UInt64
    var low: UInt64

    static func < (left: Key, right: Key) -> Bool {
      (left.activity, left.chat, left.low) > (right.activity, right.chat, right.low)
    }
  }

  /// The chats. A body that reads it is made anew when one comes, goes or moves; what a chat shows of itself is the chat's.
  public private(set) var all: [Chat] = []

  @ObservationIgnored private var handlers: [(number: Int, call: @MainActor ([Chat]) -> Void)] = []
  @ObservationIgnored private var followers: [Int: AsyncStream<[Chat]>.Continuation] = [:]
  @ObservationIgnored private var count = 0

  init() {}

  /// Calls `handler` after any visible change of the list or of a chat in it: one that comes, goes or moves, its messages,
  /// members, name, unread count (S0-20, S3-25). Changes that come together are told together.
  /// - Returns: what ends it; harmless twice.
  @discardableResult
  public func onChange(_ handler: @escaping @MainActor ([Chat]) -> Void) -> @MainActor () -> Void {
    count += 1
    let number = count
    handlers.append((number, handler))
    return { [weak self] in self?.handlers.removeAll { $0.number == number } }
  }

  /// The list as it is, then after any visible change as with `onChange`; who is slow gets the newest (S0-21).
  public func snapshots() -> AsyncStream<[Chat]> {
    count += 1
    let number = count
    let (stream, continuation) = AsyncStream.makeStream(of: [Chat].self, bufferingPolicy: .bufferingNewest(1))
    followers[number] = continuation
    continuation.onTermination = { [weak self] _ in
      Task { @MainActor in self?.followers[number] = nil }
    }
    continuation.yield(all)
    return stream
  }

  // MARK: Keeping it

  /// Takes over what became of these chats; each is in the list or not, and at its place. Returns whether any is, or was.
  func follow(_ chats: [Chat]) -> Bool {
    let concerns = chats.contains { $0.listed != nil || $0.listKey != nil }
    var list: [Chat]?
    var changed: [Chat] = []
    for chat in chats where chat.listed != chat.listKey { changed.append(chat) }
    guard !changed.isEmpty else { return concerns }
    if changed.count > 64, changed.count > all.count / 8 {
      // Sorting once is less than that many places.
      for chat in changed { chat.listed = chat.listKey }
      let gone = Set(changed)
      list = all.filter { !gone.contains($0) } + changed.filter { $0.listed != nil }
      list?.sort { $0.listed! < $1.listed! }
    } else {
      var edited = all
      for chat in changed {
        if let old = chat.listed { edited.remove(at: Self.place(of: old, in: edited)) }
        chat.listed = chat.listKey
        if let new = chat.listed { edited.insert(chat, at: Self.place(of: new, in: edited)) }
      }
      list = edited
    }
    if let list, list != all { all = list }
    return concerns
  }

  private static func place(of key: Key, in list: [Chat]) -> Int {
    var (low, high) = (0, list.count)
    while low < high {
      let middle = (low + high) / 2
      if let other = list[middle].listed, other < key { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Nobody is signed in, or somebody else.
  func clear() {
    for chat in all { chat.listed = nil }
    if !all.isEmpty { all = [] }
    tell()
  }

  /// Tells who does not observe.
  func tell() {
    for handler in handlers { handler.call(all) }
    for follower in followers.values { follower.yield(all) }
  }
}

extension Chat {
  /// Where it belongs in the list; nil for what is not listed (S0-17).
  var listKey: ChatListStore.Key? {
    guard state == .active, let snapshot else { return nil }
    return ChatListStore.Key(
      activity: snapshot.summary.lastActivity.microseconds, chat: snapshot.id.high, low: snapshot.id.low)
  }
}
