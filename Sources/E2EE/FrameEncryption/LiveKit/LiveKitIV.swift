import PalbeWire

/// The 12-byte IV of LiveKit's frames and data packets, sent behind each: three words, big-endian.
public struct LiveKitIV: Hashable, Sendable {
  /// Bytes on the wire.
  public static let byteCount = 12

  /// The sender's SSRC, or a number that stands for it. A data packet's is random.
  public let source: UInt32
  /// The RTP timestamp, or the Unix time in milliseconds.
  public let timestamp: UInt32
  /// The timestamp minus a count below 65,535.
  public let mark: UInt32

  /// Three words.
  public init(source: UInt32, timestamp: UInt32, mark: UInt32) {
    self.source = source
    self.timestamp = timestamp
    self.mark = mark
  }

  /// Reads 12 bytes; nil for another number of them.
  public init?(_ bytes: Span<UInt8>) {
    guard bytes.count == LiveKitIV.byteCount else { return nil }
    self.init(
      source: LiveKitIV.word(bytes, 0), timestamp: LiveKitIV.word(bytes, 4), mark: LiveKitIV.word(bytes, 8))
  }

  private static func word(_ bytes: Span<UInt8>, _ offset: Int) -> UInt32 {
    var value: UInt32 = 0
    for index in offset..<offset + 4 { value = value << 8 | UInt32(bytes[index]) }
    return value
  }

  /// The 12 bytes, in memory of their own.
  public var bytes: [UInt8] {
    let inline = inlineBytes
    return (0..<LiveKitIV.byteCount).map { inline[$0] }
  }

  var inlineBytes: InlineArray<12, UInt8> {
    var bytes = InlineArray<12, UInt8>(repeating: 0)
    var span = bytes.mutableSpan
    var raw = unsafe span.mutableBytes
    raw.storeBytes(of: source.bigEndian, toByteOffset: 0, as: UInt32.self)
    raw.storeBytes(of: timestamp.bigEndian, toByteOffset: 4, as: UInt32.self)
    raw.storeBytes(of: mark.bigEndian, toByteOffset: 8, as: UInt32.self)
    return bytes
  }
}

/// The IVs of one source, none of them twice.
///
/// An IV is (source, t, t - c): t the RTP timestamp, c the frame's count modulo 65,535. Two frames of a source have one IV
/// exactly when both t and c are equal. In 65,535 frames in a row, a cycle, no c comes twice; so it is enough that a
/// cycle's timestamps all lie above those of the cycles before it, and that all of them together span less than 2^32. What
/// does not fit is refused, and a new source has to be taken. A count is used up only by an IV that is given out.
struct LiveKitIVSequence: Sendable {
  static let cycle: UInt32 = 0xffff

  let source: UInt32
  private var count: UInt32
  private var used: UInt32 = 0
  /// Timestamps without wraps: the lowest, the highest, and the highest of the cycles before this one.
  private var lowest: Int64 = 0
  private var highest: Int64 = 0
  private var floor = Int64.min
  private var hasBegun = false

  /// - Parameter firstCount: where counting begins; any.
  init(source: UInt32, firstCount: UInt32) {
    self.source = source
    count = firstCount % Self.cycle
  }

  /// The next frame's IV; nil when it could repeat one.
  mutating func next(timestamp: UInt32) -> LiveKitIV? {
    if !hasBegun {
      lowest = Int64(timestamp)
      highest = lowest
      hasBegun = true
    }
    let step = Int32(bitPattern: timestamp &- UInt32(truncatingIfNeeded: highest))
    let time = highest + Int64(step)
    let floor = used == Self.cycle ? highest : self.floor
    guard time > floor, max(highest, time) - min(lowest, time) < 1 << 32 else { return nil }
    if used == Self.cycle {
      self.floor = floor
      used = 0
    }
    lowest = min(lowest, time)
    highest = max(highest, time)
    let iv = LiveKitIV(source: source, timestamp: timestamp, mark: timestamp &- count)
    count = count + 1 == Self.cycle ? 0 : count + 1
    used += 1
    return iv
  }
}

/// The IVs that a receiver opened last. An IV is never used twice by who keeps the rules, so one that is here is a replay.
///
/// LiveKit's format has no counter that a receiver could check; a frame older than the latest 256 can be replayed by whoever
/// carries it.
struct RecentIVs: ~Copyable, Sendable {
  static let size = 256
  private var entries = InlineArray<256, UInt64>(repeating: 0)
  private var sources = InlineArray<256, UInt32>(repeating: 0)
  private var count = 0
  private var next = 0

  func contains(_ iv: LiveKitIV) -> Bool {
    let entry = Self.entry(iv)
    for index in 0..<count where entries[index] == entry && sources[index] == iv.source { return true }
    return false
  }

  mutating func insert(_ iv: LiveKitIV) {
    entries[next] = Self.entry(iv)
    sources[next] = iv.source
    next = (next + 1) % Self.size
    count = min(count + 1, Self.size)
  }

  private static func entry(_ iv: LiveKitIV) -> UInt64 { UInt64(iv.timestamp) << 32 | UInt64(iv.mark) }
}
