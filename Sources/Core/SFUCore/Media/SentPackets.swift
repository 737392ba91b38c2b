import PalbeRTP
import PalbeUnits

/// What the numbers that a subscriber knows stand for: which packet of which source, and how it was rewritten.
///
/// The packets themselves lie once for all subscribers in their source's `history`. Allocates only in its initializer.
struct SentPackets {
  /// One packet, 24 bytes.
  struct Entry: BitwiseCopyable {
    /// The source's; zero where nothing is stored.
    fileprivate(set) var source = SSRC(0)
    /// The lower half of the source's extended sequence number.
    fileprivate(set) var sequence: UInt32 = 0
    fileprivate(set) var timestamp = RTPTimestamp(0)
    /// In milliseconds, with the flag `isRepaired`.
    fileprivate var repairedAt: UInt32 = 0
    fileprivate(set) var number = SequenceNumber(0)
    fileprivate(set) var pictureID: UInt16 = 0
    /// The lower half of the source's timestamp: tells apart what a source that started over sent under one number.
    fileprivate(set) var stamp: UInt16 = 0
    fileprivate(set) var tl0PictureIndex: UInt8 = 0
    fileprivate var flags: UInt8 = 0

    fileprivate static let isRepaired: UInt8 = 1
    fileprivate static let endsPicture: UInt8 = 2
    fileprivate static let tellsLayers: UInt8 = 4
  }

  private var entries: [Entry]
  private let mask: Int

  /// Room for the last `capacity` packets, which is a power of two.
  init(capacity: Int) {
    entries = [Entry](repeating: Entry(), count: capacity)
    mask = capacity - 1
  }

  mutating func note(_ packet: borrowing MediaPacket, sentAs fields: StreamRewriter.Fields) {
    var entry = Entry()
    entry.source = packet.header.ssrc
    entry.sequence = UInt32(truncatingIfNeeded: packet.sequence.rawValue)
    entry.stamp = UInt16(truncatingIfNeeded: packet.header.timestamp.rawValue)
    entry.timestamp = fields.timestamp
    entry.number = fields.sequenceNumber
    entry.pictureID = fields.pictureID
    entry.tl0PictureIndex = fields.tl0PictureIndex
    if fields.endsPicture { entry.flags |= Entry.endsPicture }
    if fields.tellsLayers { entry.flags |= Entry.tellsLayers }
    entries[Int(fields.sequenceNumber.rawValue) & mask] = entry
  }

  /// What was given the number.
  func entry(_ number: SequenceNumber) -> Entry? {
    let entry = entries[Int(number.rawValue) & mask]
    return entry.source.rawValue != 0 && entry.number == number ? entry : nil
  }

  /// What was sent under the number, when it was not repaired within `interval`; notes that it is repaired now.
  mutating func claim(_ number: SequenceNumber, at now: Instant, interval: TimeDelta) -> Entry? {
    guard let entry = entry(number) else { return nil }
    let index = Int(number.rawValue) & mask
    let milliseconds = UInt32(truncatingIfNeeded: now.nanoseconds / 1_000_000)
    if entry.flags & Entry.isRepaired != 0, milliseconds &- entry.repairedAt < interval.wholeMilliseconds {
      return nil
    }
    entries[index].flags |= Entry.isRepaired
    entries[index].repairedAt = milliseconds
    return entry
  }
}

extension SentPackets.Entry {
  /// The packet under the same number of the source is the one that was sent.
  func isOf(_ packet: borrowing MediaPacket) -> Bool {
    packet.header.ssrc == source && UInt16(truncatingIfNeeded: packet.header.timestamp.rawValue) == stamp
  }

  /// As the rewriter gave them when the packet was sent.
  var fields: StreamRewriter.Fields {
    StreamRewriter.Fields(
      sequenceNumber: number, timestamp: timestamp, pictureID: pictureID, tl0PictureIndex: tl0PictureIndex,
      endsPicture: flags & Self.endsPicture != 0, tellsLayers: flags & Self.tellsLayers != 0)
  }
}
