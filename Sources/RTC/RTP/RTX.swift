import PalbeUnits
import PalbeWire

/// Retransmission packets (RFC 4588 §4): the original packet's sequence number goes before its payload.
public enum RTX {
  /// Bytes that wrapping adds.
  public static let overhead = 2

  /// Turns the media packet in `buffer[0..<count]` into a retransmission packet where it lies.
  ///
  /// Padding stays behind the payload. The buffer needs two bytes more than `count`.
  /// - Returns: the new length.
  @inlinable @_lifetime(buffer: copy buffer)
  public static func wrap(
    _ buffer: inout MutableSpan<UInt8>, count: Int, payloadType: PayloadType, ssrc: SSRC,
    sequenceNumber: SequenceNumber
  ) throws(WireError) -> Int {
    guard count >= 0, count + overhead <= buffer.count else {
      throw .truncated(needed: count + overhead, have: buffer.count)
    }
    let header = try RTPHeader.parse(buffer.span.extracting(0..<count))
    buffer.moveBytes(header.headerByteCount..<count, to: header.headerByteCount + overhead)
    buffer.store(uint16: header.sequenceNumber.rawValue, at: header.headerByteCount)
    buffer.setRTP(payloadType: payloadType)
    buffer.setRTP(ssrc: ssrc)
    buffer.setRTP(sequenceNumber: sequenceNumber)
    return count + overhead
  }

  /// Turns the retransmission packet in `buffer[0..<count]` back into the media packet where it lies.
  ///
  /// - Returns: the new length, nil for a packet that carries padding alone.
  @inlinable @_lifetime(buffer: copy buffer)
  public static func unwrap(
    _ buffer: inout MutableSpan<UInt8>, count: Int, payloadType: PayloadType, ssrc: SSRC
  ) throws(WireError) -> Int? {
    guard count >= 0, count <= buffer.count else { throw .truncated(needed: count, have: buffer.count) }
    let header = try RTPHeader.parse(buffer.span.extracting(0..<count))
    let payload = header.payloadRange(packetByteCount: count)
    guard payload.count >= overhead else {
      guard payload.isEmpty else { throw .truncated(needed: overhead, have: payload.count) }
      return nil
    }
    let original = SequenceNumber(buffer.span.uint16(at: payload.lowerBound))
    buffer.moveBytes(payload.lowerBound + overhead..<count, to: payload.lowerBound)
    buffer.setRTP(payloadType: payloadType)
    buffer.setRTP(ssrc: ssrc)
    buffer.setRTP(sequenceNumber: original)
    return count - overhead
  }
}
