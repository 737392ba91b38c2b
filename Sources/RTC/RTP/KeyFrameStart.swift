import PalbeUnits
import PalbeWire

/// Whether a packet begins a key frame, by what stays in the clear when frames are encrypted end to end: headers of NAL
/// units and of aggregates, never what is in them.
public enum KeyFrameStart {
  /// H.264 (RFC 6184): the packet begins with a sequence parameter set, alone or in an aggregate.
  @inlinable public static func isH264(_ payload: Span<UInt8>) -> Bool {
    guard payload.count > 0 else { return false }
    switch payload[0] & 0x1f {
    case 7: return true
    case 24:  // STAP-A: sizes and units
      var at = 1
      while at + 2 < payload.count {
        if payload[at + 2] & 0x1f == 7 { return true }
        at += 2 + Int(payload.uint16(at: at))
      }
      return false
    default: return false
    }
  }

  /// AV1 (its RTP payload format §4.4): the aggregation header says that a coded video sequence begins.
  @inlinable public static func isAV1(_ payload: Span<UInt8>) -> Bool {
    payload.count > 0 && payload[0] & 0x08 != 0
  }
}

/// Redundant audio (RFC 2198).
public enum RedundantAudio {
  /// Where the primary encoding begins, the last of the blocks; nil for a malformed payload.
  @inlinable public static func primaryOffset(in payload: Span<UInt8>) -> Int? {
    var at = 0
    var redundant = 0
    while at < payload.count {
      guard payload[at] & 0x80 != 0 else {
        let start = at + 1 + redundant
        return start <= payload.count ? start : nil
      }
      guard at + 4 <= payload.count else { return nil }
      redundant += Int(payload.uint16(at: at + 2) & 0x3ff)
      at += 4
    }
    return nil
  }
}
