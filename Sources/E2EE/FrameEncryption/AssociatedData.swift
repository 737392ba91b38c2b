/// Header and metadata side by side on the stack: one call into the cipher instead of two.
///
/// Written in words: a header's values are stored eight bytes at a time, each over the slack of the one before.
struct AssociatedData: ~Copyable {
  static let capacity = 40
  var bytes = InlineArray<40, UInt8>(repeating: 0)
  var count = 0

  @inline(__always)
  init() {}

  /// A header, then any metadata; both together at most `capacity` bytes.
  @inline(__always)
  mutating func set(_ header: SFrameHeader, metadata: Span<UInt8>) {
    let length = set(header)
    for index in metadata.indices { bytes[length + index] = metadata[index] }
    count = length + metadata.count
  }

  /// A header, the source and the clear bytes.
  @inline(__always)
  mutating func set(_ header: SFrameHeader, source: FrameSource, clear: ClearBytes) {
    let length = set(header)
    bytes[length] = source.rawValue
    var span = bytes.mutableSpan
    clear.storeWide(into: &span, at: length + 1)
    count = length + 1 + clear.count
  }

  @inline(__always)
  private mutating func set(_ header: SFrameHeader) -> Int {
    let (keyLength, counterLength) = (header.keyIDByteCount, header.counterByteCount)
    var span = bytes.mutableSpan
    var raw = unsafe span.mutableBytes
    raw.storeBytes(of: header.configuration, toByteOffset: 0, as: UInt8.self)
    raw.storeBytes(of: Self.leading(header.keyID, keyLength), toByteOffset: 1, as: UInt64.self)
    raw.storeBytes(
      of: Self.leading(header.counter, counterLength), toByteOffset: 1 + keyLength, as: UInt64.self)
    return 1 + keyLength + counterLength
  }

  /// The low `length` bytes of a value, big-endian, in front.
  @inline(__always)
  private static func leading(_ value: UInt64, _ length: Int) -> UInt64 {
    length == 0 ? 0 : (value << UInt64(64 - 8 * length)).bigEndian
  }

  var span: Span<UInt8> {
    @_lifetime(borrow self) @inline(__always)
    borrowing get { bytes.span.extracting(first: count) }
  }
}

/// The nonce of one frame: the salt XOR the counter (RFC 9605 §4.4.3).
struct FrameNonce: ~Copyable {
  private var bytes: InlineArray<12, UInt8>

  @inline(__always)
  init(salt: borrowing FrameSalt, counter: UInt64) {
    bytes = InlineArray(repeating: 0)
    var span = bytes.mutableSpan
    var raw = unsafe span.mutableBytes
    raw.storeBytes(of: salt.high, toByteOffset: 0, as: UInt32.self)
    raw.storeBytes(of: salt.low ^ counter.bigEndian, toByteOffset: 4, as: UInt64.self)
  }

  var span: Span<UInt8> {
    @_lifetime(borrow self) @inline(__always)
    borrowing get { bytes.span }
  }
}

/// A salt in words as they lie in memory. Without the key it is worth nothing to anyone, so it is not wiped.
struct FrameSalt: ~Copyable, Sendable {
  let high: UInt32
  let low: UInt64

  init(_ salt: Span<UInt8>) {
    precondition(salt.count == SFrameCipherSuite.nonceByteCount)
    let bytes = unsafe salt.bytes
    high = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt32.self)
    low = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: 4, as: UInt64.self)
  }
}
