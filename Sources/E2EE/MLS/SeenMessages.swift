import PalbeMLSMessages

/// Remembers which messages were processed, the last 1,024: what comes again is told from what is wrong.
///
/// It is asked only about messages that were refused as used or stale, so that nobody can hide a genuine message behind
/// a forged one. It is kept in 32 pages of 32, so that a message changes some 500 stored bytes and not all of them.
struct SeenMessages: Sendable, Equatable {
  enum Origin: UInt8, Sendable {
    case received = 0
    case own = 1
  }

  /// 32 digests at most, each after a byte that says where from.
  struct Page: Sendable, Equatable {
    /// Counts pages from 0; the place of its record is `number % pageLimit`.
    let number: UInt64
    var entries: [UInt8]
  }

  static let pageLimit = 32
  static let entriesPerPage = 32
  static let digestByteCount = 16
  private static let stride = 1 + digestByteCount

  /// Ascending numbers without a gap.
  private(set) var pages: [Page] = []

  init() {}

  /// As stored; nil when these are no pages of ours.
  init?(pages: [Page]) {
    let isOrdered = zip(pages, pages.dropFirst()).allSatisfy { $0.number &+ 1 == $1.number }
    let areWhole = pages.allSatisfy {
      $0.entries.count % Self.stride == 0 && $0.entries.count <= Self.stride * Self.entriesPerPage
    }
    guard pages.count <= Self.pageLimit, isOrdered, areWhole else { return nil }
    self.pages = pages
  }

  /// Names a message by all of its bytes: a changed copy is none.
  static func digest(of message: MLSMessage, _ crypto: SuiteCrypto) -> [UInt8] {
    Array(crypto.hash(message.encoded()).prefix(digestByteCount))
  }

  func origin(of digest: [UInt8]) -> Origin? {
    for page in pages.reversed() {
      for start in Swift.stride(from: 0, to: page.entries.count, by: Self.stride)
      where page.entries[(start + 1)..<(start + Self.stride)].elementsEqual(digest) {
        return Origin(rawValue: page.entries[start])
      }
    }
    return nil
  }

  mutating func insert(_ digest: [UInt8], _ origin: Origin) {
    if pages.last.map({ $0.entries.count >= Self.stride * Self.entriesPerPage }) ?? true {
      pages.append(Page(number: pages.last.map { $0.number &+ 1 } ?? 0, entries: []))
      if pages.count > Self.pageLimit { pages.removeFirst() }
    }
    pages[pages.count - 1].entries += [origin.rawValue] + digest
  }
}
