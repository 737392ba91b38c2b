import PalbeMLSMessages

/// Messages of epochs that a group has not reached, in bounded memory, until the commits before them came.
///
///     do { … = try group.process(bytes, at: now) } catch .message(.futureEpoch) { _ = waiting.insert(bytes, for: group) }
///     while let result = group.processNext(of: &waiting, at: now) { … }          // after every commit
///
/// They come out by epoch; in an epoch commits come last, since a commit may name the proposals of its epoch, and what
/// is of one kind comes out as it came in. Nothing in here was verified: an epoch number alone never makes a client
/// commit or rejoin.
public struct FutureMessages: Sendable {
  /// What became of a message.
  public enum Insertion: Sendable, Hashable {
    /// It waits.
    case kept
    /// The same message waits already.
    case duplicate
    /// There is no room for it beside messages of nearer epochs, or it is too far ahead: fetch it again later.
    case refused
  }

  /// Most messages that wait.
  public let maximumCount: Int
  /// Most bytes that wait.
  public let maximumByteCount: Int
  /// How many epochs a message may be ahead.
  public let maximumDistance: UInt64
  /// Bytes that wait.
  public private(set) var byteCount = 0

  private struct Entry {
    let epoch: UInt64
    let isCommit: Bool
    let bytes: [UInt8]

    func isAfter(_ other: Entry) -> Bool {
      (epoch, isCommit ? 1 : 0) > (other.epoch, other.isCommit ? 1 : 0)
    }
  }

  /// In the order they come out.
  private var entries: [Entry] = []
  private var known: Set<[UInt8]> = []

  /// An empty buffer with its bounds.
  public init(maximumCount: Int = 1_024, maximumByteCount: Int = 4 << 20, maximumDistance: UInt64 = 1_024) {
    self.maximumCount = maximumCount
    self.maximumByteCount = maximumByteCount
    self.maximumDistance = maximumDistance
  }

  /// How many messages wait.
  public var count: Int { entries.count }

  /// Keeps a message that `process` refused as `futureEpoch`. One of a nearer epoch takes the room of farther ones.
  public mutating func insert(_ bytes: [UInt8], for group: borrowing MLSGroup) -> Insertion {
    guard let message = try? MLSMessage(decoding: bytes), let type = message.contentType,
      let epoch = message.epoch, message.groupID == group.groupID, epoch > group.epochNumber,
      epoch - group.epochNumber <= maximumDistance, bytes.count <= maximumByteCount
    else { return .refused }
    return insert(Entry(epoch: epoch, isCommit: type == .commit, bytes: bytes))
  }

  private mutating func insert(_ entry: Entry) -> Insertion {
    guard !known.contains(entry.bytes) else { return .duplicate }
    // What lies after the new one may go for it, the farthest first.
    var kept = entries.count
    var bytes = byteCount
    while kept >= maximumCount || bytes + entry.bytes.count > maximumByteCount {
      guard kept > 0, entries[kept - 1].isAfter(entry) else { return .refused }
      kept -= 1
      bytes -= entries[kept].bytes.count
    }
    for gone in entries[kept...] { known.remove(gone.bytes) }
    entries.removeSubrange(kept...)
    let place = entries.firstIndex { $0.isAfter(entry) } ?? entries.count
    entries.insert(entry, at: place)
    known.insert(entry.bytes)
    byteCount = bytes + entry.bytes.count
    return .kept
  }

  /// Takes out the next message of an epoch up to this one.
  public mutating func next(upTo epoch: UInt64) -> [UInt8]? {
    guard let first = entries.first, first.epoch <= epoch else { return nil }
    entries.removeFirst()
    known.remove(first.bytes)
    byteCount -= first.bytes.count
    return first.bytes
  }

  /// Lets go of all.
  public mutating func removeAll() {
    entries = []
    known = []
    byteCount = 0
  }
}

extension MLSGroup {
  /// Processes the next message that waited for the epoch the group is in now; nil when none is left. A message that
  /// proves wrong is gone, too.
  public mutating func processNext(
    of waiting: inout FutureMessages, at unixTime: UInt64
  ) -> Result<ProcessedMessage, MLSError>? {
    guard let bytes = waiting.next(upTo: epochNumber) else { return nil }
    do { return .success(try process(bytes, at: unixTime)) } catch { return .failure(error) }
  }
}
