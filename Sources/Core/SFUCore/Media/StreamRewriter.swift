import PalbeRTP
import PalbeUnits

/// Makes one outgoing stream of what comes from one or, one after the other, several incoming ones: sequence numbers,
/// timestamps and VP8's counters go on without a jump wherever the source changes or pauses.
///
/// Within one source numbers keep their distances, so that a packet lost on the way to us is missing, and asked for,
/// behind us too, and a repaired one fits into its gap. A packet that is left out on purpose leaves no gap.
struct StreamRewriter {
  /// How a source's numbers become ours.
  private struct Mapping {
    var source: SSRC
    /// The first packet that goes through, and the number it gets.
    var first: ExtendedSequenceNumber
    var firstOut: UInt64
    var timestampOffset: UInt32
    var pictureOffset: UInt16
    var layerZeroOffset: UInt8
    /// The newest packet's number and arrival, to see a source that starts over.
    var highest: ExtendedSequenceNumber
  }

  /// Behind a packet that was left out, all numbers are lower by what was left out so far.
  private struct Cut: BitwiseCopyable {
    var last: UInt64
    var packets: UInt64
    var pictures: UInt16
  }
  /// The last ones, a ring.
  private var cuts = InlineArray<32, Cut>(repeating: Cut(last: 0, packets: 0, pictures: 0))
  /// Made since the source began.
  private var cutCount = 0
  private var leftOutPicture: UInt16?

  /// A jump by more than this is another beginning, not loss or reordering.
  static let largestStep: Int64 = 3_000

  private let clockRate: Int
  private let firstSequence: UInt64
  private var mapping: Mapping?
  private var highestOut: UInt64?
  private(set) var lastTimestamp = RTPTimestamp(0)
  private var lastSentAt = Instant.zero
  private var lastPictureID: UInt16?
  private var lastLayerZero: UInt8?

  /// - Parameter firstSequence: the first number on the wire; below 32,768, so that a receiver that misses the first
  ///   packets cannot mistake the roll-over count (RFC 3711 §3.3.1).
  init(clockRate: Int, firstSequence: UInt16) {
    self.clockRate = clockRate
    self.firstSequence = UInt64(firstSequence & 0x7fff)
  }

  /// Whose packets go through.
  var source: SSRC? { mapping?.source }

  /// What to add to the source's timestamps.
  var timestampOffset: UInt32? { mapping?.timestampOffset }

  /// False when `sequence` is so far from what came before that the source must have started over.
  func follows(_ sequence: ExtendedSequenceNumber) -> Bool {
    guard let mapping else { return false }
    let step = Int64(bitPattern: sequence.rawValue &- mapping.highest.rawValue)
    return step < Self.largestStep && step > -Self.largestStep
  }

  /// From this packet on, its source goes through, behind what was sent before.
  ///
  /// - Parameter aligned: what to add to the source's timestamps so that they name the same moments as those of the source
  ///   before; nil where nobody knows.
  mutating func start(_ packet: borrowing MediaPacket, at now: Instant, aligned: UInt32? = nil) {
    cutCount = 0
    leftOutPicture = nil
    let header = packet.header
    var offset = mapping?.timestampOffset ?? 0
    if highestOut != nil, mapping?.source != header.ssrc {
      // Another source has another clock: go on by the time that passed, by a tick at least.
      let elapsed = max(0, (now - lastSentAt).wholeMicroseconds)
      let ticks = max(1, min(elapsed, 3_600_000_000) * Int64(clockRate) / 1_000_000)
      offset = lastTimestamp.rawValue &+ UInt32(truncatingIfNeeded: ticks) &- header.timestamp.rawValue
      if let aligned {
        // Time must go on; and a report that is off by seconds is not believed.
        let step = Int64((header.timestamp + Int(aligned)).distance(from: lastTimestamp))
        if step > 0, abs(step - ticks) < 2 * Int64(clockRate) {
          offset = aligned
        } else if step <= 0, step > -Int64(clockRate) {
          offset = lastTimestamp.rawValue &+ 1 &- header.timestamp.rawValue
        }
      }
    }
    var started = Mapping(
      source: header.ssrc, first: packet.sequence, firstOut: highestOut.map { $0 + 1 } ?? firstSequence,
      timestampOffset: offset, pictureOffset: 0, layerZeroOffset: 0, highest: packet.sequence)
    if let lastPictureID, let pictureID = packet.pictureID {
      started.pictureOffset = lastPictureID &+ 1 &- pictureID
    }
    if let lastLayerZero, let index = packet.tl0PictureIndex {
      started.layerZeroOffset = lastLayerZero &+ 1 &- index
    }
    mapping = started
  }

  /// True for a number of the source that lies behind all before.
  func isNewest(_ sequence: ExtendedSequenceNumber) -> Bool { mapping.map { sequence > $0.highest } ?? true }

  /// The highest number given out.
  var lastNumber: SequenceNumber? { highestOut.map { SequenceNumber(UInt16(truncatingIfNeeded: $0)) } }

  /// Leaves out a packet of the mapped source. False for one that is not the newest: its number is a gap already.
  mutating func leaveOut(_ packet: borrowing MediaPacket) -> Bool {
    let number = packet.sequence.rawValue
    guard var mapping, packet.sequence > mapping.highest, var cut = cut(before: number) else { return false }
    if !packet.keepsPictureDistances, let picture = packet.pictureID, picture != leftOutPicture {
      cut.pictures &+= 1
      leftOutPicture = picture
    }
    // Several in a row are one cut.
    let follows = cutCount > 0 && cut.last + 1 == number
    cut.packets += 1
    cut.last = number
    if !follows { cutCount += 1 }
    cuts[(cutCount - 1) % 32] = cut
    mapping.highest = packet.sequence
    self.mapping = mapping
    return true
  }

  /// What was left out before a number; nil where that is forgotten.
  private func cut(before number: UInt64) -> Cut? {
    var index = cutCount
    while index > max(0, cutCount - 32) {
      index -= 1
      if cuts[index % 32].last < number { return cuts[index % 32] }
    }
    return cutCount > 32 ? nil : Cut(last: 0, packets: 0, pictures: 0)
  }

  /// Numbers from `first` on were given to packets that are not sent after all: the next start takes them.
  mutating func takeBack(from first: SequenceNumber) {
    guard let highest = highestOut else { return }
    let count = SequenceNumber(UInt16(truncatingIfNeeded: highest)).distance(from: first) + 1
    guard count > 0, UInt64(count) <= highest else { return }
    highestOut = highest - UInt64(count)
  }

  /// False for a number that was given out before the present source went through, or before it started anew.
  func isOfPresentSource(_ sequence: SequenceNumber) -> Bool {
    guard let mapping, let highestOut else { return true }
    let age = SequenceNumber(UInt16(truncatingIfNeeded: highestOut)).distance(from: sequence)
    return age <= Int64(clamping: highestOut) - Int64(clamping: mapping.firstOut)
  }

  /// A packet's new fields.
  struct Fields {
    var sequenceNumber: SequenceNumber
    var timestamp: RTPTimestamp
    var pictureID: UInt16
    var tl0PictureIndex: UInt8
    /// The last packet of the picture that the receiver gets.
    var endsPicture: Bool
    /// Its dependency descriptor tells which layers the receiver gets.
    var tellsLayers = false
  }

  /// The new fields of a packet of the mapped source; nil for one from before the start.
  mutating func fields(of packet: borrowing MediaPacket, at now: Instant) -> Fields? {
    guard var mapping, packet.sequence >= mapping.first, let cut = cut(before: packet.sequence.rawValue)
    else { return nil }
    let out = mapping.firstOut + (packet.sequence.rawValue - mapping.first.rawValue) - cut.packets
    let fields = Fields(
      sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: out)),
      timestamp: RTPTimestamp(packet.header.timestamp.rawValue &+ mapping.timestampOffset),
      pictureID: (packet.pictureID ?? 0) &+ mapping.pictureOffset &- cut.pictures,
      tl0PictureIndex: (packet.tl0PictureIndex ?? 0) &+ mapping.layerZeroOffset,
      endsPicture: packet.header.marker)
    mapping.highest = max(mapping.highest, packet.sequence)
    self.mapping = mapping
    if highestOut.map({ out > $0 }) ?? true {
      highestOut = out
      lastTimestamp = fields.timestamp
      lastSentAt = now
      if packet.pictureID != nil { lastPictureID = fields.pictureID & packet.pictureIDMask }
      if packet.tl0PictureIndex != nil { lastLayerZero = fields.tl0PictureIndex }
    }
    return fields
  }
}
