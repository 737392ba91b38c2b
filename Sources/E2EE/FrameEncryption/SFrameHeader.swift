import PalbeWire

/// The header in front of every sealed frame: which key, and which number under it (RFC 9605 §4.3).
///
/// One configuration byte, then the key id and the counter, big-endian and as short as possible; values up to 7 lie
/// in the configuration byte itself:
///
///      0 1 2 3 4 5 6 7
///     +-+-+-+-+-+-+-+-+
///     |X|  K  |Y|  C  |   X, Y: K and C hold a length less one instead of the value
///     +-+-+-+-+-+-+-+-+
public struct SFrameHeader: Equatable, Hashable, Sendable, BitwiseCopyable {
  /// KID: names the key.
  public let keyID: UInt64
  /// CTR: the frame's number under that key; the nonce comes from it.
  public let counter: UInt64

  /// The longest header: the configuration byte and two values of eight bytes.
  public static let maximumByteCount = 17

  /// A header for one frame.
  @inlinable public init(keyID: UInt64, counter: UInt64) {
    self.keyID = keyID
    self.counter = counter
  }

  /// Bytes of the encoded header, 1 to 17.
  @inlinable public var byteCount: Int {
    1 + SFrameHeader.byteCount(ofField: keyID) + SFrameHeader.byteCount(ofField: counter)
  }

  /// Bytes a value takes after the configuration byte; 0 when it lies inside.
  @inlinable @inline(__always) static func byteCount(ofField value: UInt64) -> Int {
    value < 8 ? 0 : (71 - value.leadingZeroBitCount) / 8
  }

  @inlinable var keyIDByteCount: Int { SFrameHeader.byteCount(ofField: keyID) }
  @inlinable var counterByteCount: Int { SFrameHeader.byteCount(ofField: counter) }

  /// The first byte.
  @inlinable @inline(__always) var configuration: UInt8 {
    SFrameHeader.bits(of: keyID, length: keyIDByteCount) << 4
      | SFrameHeader.bits(of: counter, length: counterByteCount)
  }

  @inlinable @inline(__always) static func bits(of value: UInt64, length: Int) -> UInt8 {
    UInt8(truncatingIfNeeded: length == 0 ? value : 7 + UInt64(length))
  }

  /// Writes `byteCount` bytes at `offset`; traps when they do not fit, so check first.
  @inlinable @_lifetime(buffer: copy buffer)
  public func write(into buffer: inout MutableSpan<UInt8>, at offset: Int) {
    let keyLength = keyIDByteCount
    buffer[offset] = configuration
    SFrameHeader.write(keyID, length: keyLength, into: &buffer, at: offset + 1)
    SFrameHeader.write(counter, length: counterByteCount, into: &buffer, at: offset + 1 + keyLength)
  }

  /// True for a key id of eight bytes, what calls use: `writeWide` may write it.
  @inline(__always) var isWide: Bool { keyID >> 56 != 0 }

  /// Writes a wide header at `offset` in words, each byte of it and no other.
  @inline(__always) @_lifetime(buffer: copy buffer)
  func writeWide(into buffer: inout MutableSpan<UInt8>, at offset: Int) {
    var bytes = unsafe buffer.mutableBytes
    // The counter's word reaches back into the key id, which then takes its place.
    bytes.storeBytes(of: counter.bigEndian, toByteOffset: offset + 1 + counterByteCount, as: UInt64.self)
    bytes.storeBytes(of: keyID.bigEndian, toByteOffset: offset + 1, as: UInt64.self)
    bytes.storeBytes(of: configuration, toByteOffset: offset, as: UInt8.self)
  }

  @inlinable @_lifetime(buffer: copy buffer)
  static func write(_ value: UInt64, length: Int, into buffer: inout MutableSpan<UInt8>, at offset: Int) {
    var rest = value
    var index = offset + length
    while index > offset {
      index -= 1
      buffer[index] = UInt8(truncatingIfNeeded: rest)
      rest >>= 8
    }
  }

  /// The encoded header.
  public var encoded: [UInt8] {
    [UInt8](capacity: SFrameHeader.maximumByteCount) { output in
      for _ in 0..<byteCount { output.append(0) }
      var bytes = output.mutableSpan
      write(into: &bytes, at: 0)
    }
  }

  /// Reads the header that begins at `offset`; bytes after it are left alone.
  ///
  /// Throws `truncated` when it does not fit, and `invalid` when a value could have been shorter: §4.3 demands the
  /// minimum number of bytes, and one spelling for each header leaves no room for two.
  @inlinable @inline(__always)
  public static func parse(_ bytes: Span<UInt8>, at offset: Int = 0) throws(WireError) -> SFrameHeader {
    let have = bytes.count - offset
    guard offset >= 0, have >= 1 else { throw .truncated(needed: 1, have: max(have, 0)) }
    let configuration = bytes[offset]
    let keyBits = configuration >> 4
    let counterBits = configuration & 15
    let keyLength = keyBits < 8 ? 0 : Int(keyBits & 7) + 1
    let counterLength = counterBits < 8 ? 0 : Int(counterBits & 7) + 1
    let needed = 1 + keyLength + counterLength
    guard have >= needed else { throw .truncated(needed: needed, have: have) }
    let keyID = keyLength == 0 ? UInt64(keyBits) : read(bytes, at: offset + 1, length: keyLength)
    guard byteCount(ofField: keyID) == keyLength else { throw .invalid(field: "SFrame KID", value: keyID) }
    let counter =
      counterLength == 0
      ? UInt64(counterBits) : read(bytes, at: offset + 1 + keyLength, length: counterLength)
    guard byteCount(ofField: counter) == counterLength else {
      throw .invalid(field: "SFrame CTR", value: counter)
    }
    return SFrameHeader(keyID: keyID, counter: counter)
  }

  /// `length` bytes at `offset`, 1 to 8, big-endian; they are there.
  @inlinable @inline(__always) static func read(_ bytes: Span<UInt8>, at offset: Int, length: Int) -> UInt64 {
    if bytes.count - offset >= 8 {
      let word = unsafe bytes.bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
      return UInt64(bigEndian: word) >> UInt64(64 - 8 * length)
    }
    var value: UInt64 = 0
    for index in offset..<offset + length { value = value << 8 | UInt64(bytes[index]) }
    return value
  }
}
