import PalbeUnits
import PalbeWire

/// The place of a confirmed row: the sequence number that the server gave, and a part for rows that share
/// one, such as what a single commit does to several members.
package struct TranscriptPosition: Hashable, Comparable, Sendable {
  /// The greatest number that a row can have; the server's log never gets there.
  package static let maximumSeq = Int64(1) << 51

  /// `seq` in the upper 56 bits, `part` in the lower eight.
  package let rawValue: UInt64

  package init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Nil for a number that the server's log does not give.
  package init?(seq: Int64, part: UInt8 = 0) {
    guard (0...Self.maximumSeq).contains(seq) else { return nil }
    rawValue = UInt64(seq) << 8 | UInt64(part)
  }

  /// Before every row.
  static let lowest = TranscriptPosition(rawValue: 0)
  /// Behind every row.
  static let highest = TranscriptPosition(rawValue: .max)

  /// The server's number.
  package var seq: Int64 { Int64(rawValue >> 8) }
  /// Which of the rows with this number.
  package var part: UInt8 { UInt8(truncatingIfNeeded: rawValue) }

  package static func < (left: TranscriptPosition, right: TranscriptPosition) -> Bool {
    left.rawValue < right.rawValue
  }
}

extension TranscriptPosition {
  // A UUIDv8 (RFC 9562 §5.8): messages are named by UUIDv7, so that nobody's message has the id of a row made
  // here.
  private static let localLow: UInt64 = 0xb0a1_6265_726f_7773

  /// The id of a row at this place that nobody sent.
  var localID: ClientMessageID {
    var bytes = ByteWriter(capacity: 16)
    bytes.uint64((rawValue >> 12) << 16 | 0x8000 | rawValue & 0xfff)
    bytes.uint64(Self.localLow)
    // Sixteen bytes are an id.
    return ClientMessageID(bytes: bytes.bytes)!
  }

  /// The place that such an id names; nil for the id of a message.
  init?(localID id: ClientMessageID) {
    guard id.low == Self.localLow, id.high >> 12 & 0xf == 8 else { return nil }
    rawValue = (id.high >> 16) << 12 | id.high & 0xfff
  }
}
