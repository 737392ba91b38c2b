import PalbeUnits
import PalbeWire

/// Where a packet's parts lie after it was written.
public struct RTPPacketLayout: Hashable, Sendable, BitwiseCopyable {
  /// Bytes before the payload.
  public var headerByteCount: Int
  /// Bytes of the whole packet.
  public var byteCount: Int
  /// Where the dependency descriptor lies; zero where there is none.
  public var descriptorOffset: Int

  @inlinable init(headerByteCount: Int, byteCount: Int, descriptorOffset: Int) {
    self.headerByteCount = headerByteCount
    self.byteCount = byteCount
    self.descriptorOffset = descriptorOffset
  }
}

/// Writes RTP headers with their extensions (RFC 3550 §5.1, RFC 8285), without allocating.
///
/// The one-byte form is used unless an id lies above 14.
public enum RTPPacketWriter {
  /// Appends a header without CSRCs; the payload is the caller's to append. Traps when `output` has no room:
  /// `headerByteCount(of:ids:)` tells how much is needed.
  @inlinable @_lifetime(output: copy output)
  public static func writeHeader(
    _ header: RTPHeader, extensions: RTPExtensionValues = RTPExtensionValues(),
    ids: RTPExtensionIDs = RTPExtensionIDs(), into output: inout OutputSpan<UInt8>
  ) {
    let start = output.count
    let twoByte = usesTwoByteForm(extensions, ids: ids)
    let extensionCount = extensionByteCount(extensions, ids: ids, twoByte: twoByte)
    let count = RTPHeader.fixedByteCount + extensionCount
    for _ in 0..<count { output.append(0) }
    var all = output.mutableSpan
    storeFixed(header, csrcCount: 0, hasExtension: count > RTPHeader.fixedByteCount, at: start, into: &all)
    storeExtensions(
      extensions, ids: ids, twoByte: twoByte, count: extensionCount, at: start + RTPHeader.fixedByteCount,
      into: &all)
  }

  /// Bytes of a header without CSRCs that carries those extensions.
  @inlinable public static func headerByteCount(of extensions: RTPExtensionValues, ids: RTPExtensionIDs)
    -> Int
  {
    RTPHeader.fixedByteCount
      + extensionByteCount(extensions, ids: ids, twoByte: usesTwoByteForm(extensions, ids: ids))
  }

  /// Copies a packet with a new header: marker, payload type, sequence number, timestamp and SSRC of `header`, and
  /// `extensions` under the ids of the destination in place of all the source had. CSRCs and payload are copied,
  /// padding is left behind.
  ///
  /// - Parameters:
  ///   - packet: a packet in the clear.
  ///   - parsed: its header as `RTPHeader.parse` gave it.
  ///   - header: the header to write.
  /// - Throws: `truncated` when `destination` is too small.
  @inlinable @_lifetime(destination: copy destination)
  public static func rewriteHeader(
    of packet: Span<UInt8>, parsed: RTPHeader, as header: RTPHeader, extensions: RTPExtensionValues,
    ids: RTPExtensionIDs, into destination: inout MutableSpan<UInt8>
  ) throws(WireError) -> RTPPacketLayout {
    try rewriteHeader(
      of: packet, parsed: parsed, as: header, extensions: extensions, descriptors: packet, ids: ids,
      into: &destination)
  }

  /// The same with a dependency descriptor from elsewhere.
  ///
  /// - Parameter descriptors: the bytes of which `extensions.dependencyDescriptor` is a range.
  @inlinable @_lifetime(destination: copy destination)
  public static func rewriteHeader(
    of packet: Span<UInt8>, parsed: RTPHeader, as header: RTPHeader, extensions: RTPExtensionValues,
    descriptors: Span<UInt8>, ids: RTPExtensionIDs, into destination: inout MutableSpan<UInt8>
  ) throws(WireError) -> RTPPacketLayout {
    let payload = parsed.payloadRange(in: packet)
    let csrcEnd = RTPHeader.fixedByteCount + 4 * parsed.csrcCount
    guard payload.upperBound <= packet.count, csrcEnd <= packet.count else {
      throw .truncated(needed: max(payload.upperBound, csrcEnd), have: packet.count)
    }
    let twoByte = usesTwoByteForm(extensions, ids: ids)
    let extensionCount = extensionByteCount(extensions, ids: ids, twoByte: twoByte)
    let headerCount = csrcEnd + extensionCount
    let total = headerCount + payload.count
    guard total <= destination.count else { throw .truncated(needed: total, have: destination.count) }
    storeFixed(
      header, csrcCount: parsed.csrcCount, hasExtension: extensionCount > 0, at: 0, into: &destination)
    if csrcEnd > RTPHeader.fixedByteCount {
      destination.copyBytes(
        from: packet.extracting(RTPHeader.fixedByteCount..<csrcEnd), at: RTPHeader.fixedByteCount)
    }
    var end = storeExtensions(
      extensions, ids: ids, twoByte: twoByte, count: extensionCount, at: csrcEnd, into: &destination)
    var descriptorOffset = 0
    if let descriptor = extensions.dependencyDescriptor, ids.dependencyDescriptor != 0 {
      guard descriptor.range.upperBound <= descriptors.count else {
        throw .truncated(needed: descriptor.range.upperBound, have: descriptors.count)
      }
      storeElementHeader(ids.dependencyDescriptor, Int(descriptor.count), twoByte, &end, &destination)
      destination.copyBytes(from: descriptors.extracting(descriptor.range), at: end)
      descriptorOffset = end
    }
    destination.copyBytes(from: packet.extracting(payload), at: headerCount)
    return RTPPacketLayout(
      headerByteCount: headerCount, byteCount: total, descriptorOffset: descriptorOffset)
  }

  /// Writes a packet of nothing but padding, as much as its last byte can tell.
  ///
  /// - Returns: its length.
  /// - Throws: `truncated` when `destination` is too small.
  @inlinable @_lifetime(destination: copy destination)
  public static func writePadding(
    _ header: RTPHeader, extensions: RTPExtensionValues, ids: RTPExtensionIDs,
    into destination: inout MutableSpan<UInt8>
  ) throws(WireError) -> Int {
    let twoByte = usesTwoByteForm(extensions, ids: ids)
    let extensionCount = extensionByteCount(extensions, ids: ids, twoByte: twoByte)
    let headerCount = RTPHeader.fixedByteCount + extensionCount
    let total = headerCount + 255
    guard total <= destination.count else { throw .truncated(needed: total, have: destination.count) }
    storeFixed(
      header, csrcCount: 0, hasExtension: headerCount > RTPHeader.fixedByteCount, at: 0, into: &destination)
    destination[0] |= 0x20
    storeExtensions(
      extensions, ids: ids, twoByte: twoByte, count: extensionCount, at: RTPHeader.fixedByteCount,
      into: &destination)
    for index in headerCount..<total - 1 { destination[index] = 0 }
    destination[total - 1] = 255
    return total
  }

  @inlinable @_lifetime(target: copy target)
  static func storeFixed(
    _ header: RTPHeader, csrcCount: Int, hasExtension: Bool, at start: Int,
    into target: inout MutableSpan<UInt8>
  ) {
    target[start] = 0x80 | (hasExtension ? 0x10 : 0) | UInt8(truncatingIfNeeded: csrcCount & 0x0f)
    target[start + 1] = header.payloadType.rawValue | (header.marker ? 0x80 : 0)
    target.store(uint16: header.sequenceNumber.rawValue, at: start + 2)
    target.store(uint32: header.timestamp.rawValue, at: start + 4)
    target.store(uint32: header.ssrc.rawValue, at: start + 8)
  }

  /// Bytes of the extension with its four-byte header, padded to words; zero when there is nothing to write.
  @inlinable static func extensionByteCount(
    _ values: RTPExtensionValues, ids: RTPExtensionIDs, twoByte: Bool
  ) -> Int {
    let overhead = twoByte ? 2 : 1
    var bytes = 0
    if values.audioLevel != nil, ids.audioLevel != 0 { bytes += overhead + 1 }
    if values.videoOrientation != nil, ids.videoOrientation != 0 { bytes += overhead + 1 }
    if values.absoluteSendTime != nil, ids.absoluteSendTime != 0 { bytes += overhead + 3 }
    if values.transportSequenceNumber != nil, ids.transportSequenceNumber != 0 { bytes += overhead + 2 }
    if let mid = values.mid, ids.mid != 0 { bytes += overhead + mid.count }
    if let rid = values.rid, ids.rid != 0 { bytes += overhead + rid.count }
    if let repairedRID = values.repairedRID, ids.repairedRID != 0 { bytes += overhead + repairedRID.count }
    if let descriptor = values.dependencyDescriptor, ids.dependencyDescriptor != 0 {
      bytes += overhead + Int(descriptor.count)
    }
    return bytes == 0 ? 0 : 4 + (bytes + 3) & ~3
  }

  /// Writes the elements, but for one that is passed on as it is: its room lies at the returned offset.
  @inlinable @discardableResult @_lifetime(target: copy target)
  static func storeExtensions(
    _ values: RTPExtensionValues, ids: RTPExtensionIDs, twoByte: Bool, count: Int, at start: Int,
    into target: inout MutableSpan<UInt8>
  ) -> Int {
    guard count > 0 else { return start }
    target.store(uint16: twoByte ? 0x1000 : 0xbede, at: start)
    target.store(uint16: UInt16(truncatingIfNeeded: (count - 4) / 4), at: start + 2)
    var at = start + 4
    if let level = values.audioLevel, ids.audioLevel != 0 {
      storeElementHeader(ids.audioLevel, 1, twoByte, &at, &target)
      target[at] = level.rawValue
      at += 1
    }
    if let orientation = values.videoOrientation, ids.videoOrientation != 0 {
      storeElementHeader(ids.videoOrientation, 1, twoByte, &at, &target)
      target[at] = orientation
      at += 1
    }
    if let time = values.absoluteSendTime, ids.absoluteSendTime != 0 {
      storeElementHeader(ids.absoluteSendTime, 3, twoByte, &at, &target)
      target[at] = UInt8(truncatingIfNeeded: time.rawValue >> 16)
      target.store(uint16: UInt16(truncatingIfNeeded: time.rawValue), at: at + 1)
      at += 3
    }
    if let number = values.transportSequenceNumber, ids.transportSequenceNumber != 0 {
      storeElementHeader(ids.transportSequenceNumber, 2, twoByte, &at, &target)
      target.store(uint16: number, at: at)
      at += 2
    }
    storeText(values.mid, ids.mid, twoByte, &at, &target)
    storeText(values.rid, ids.rid, twoByte, &at, &target)
    storeText(values.repairedRID, ids.repairedRID, twoByte, &at, &target)
    let end = at
    while at < start + count {
      target[at] = 0
      at += 1
    }
    return end
  }

  @inlinable static func usesTwoByteForm(_ values: RTPExtensionValues, ids: RTPExtensionIDs) -> Bool {
    values.audioLevel != nil && ids.audioLevel > 14
      || values.videoOrientation != nil && ids.videoOrientation > 14
      || values.absoluteSendTime != nil && ids.absoluteSendTime > 14
      || values.transportSequenceNumber != nil && ids.transportSequenceNumber > 14
      || values.mid != nil && ids.mid > 14 || values.rid != nil && ids.rid > 14
      || values.repairedRID != nil && ids.repairedRID > 14
      || values.dependencyDescriptor != nil
        && (ids.dependencyDescriptor > 14
          || ids.dependencyDescriptor != 0 && (values.dependencyDescriptor?.count ?? 0) > 16)
  }

  @inlinable @_lifetime(target: copy target)
  static func storeElementHeader(
    _ id: UInt8, _ count: Int, _ twoByte: Bool, _ at: inout Int, _ target: inout MutableSpan<UInt8>
  ) {
    if twoByte {
      target[at] = id
      target[at + 1] = UInt8(truncatingIfNeeded: count)
      at += 2
    } else {
      target[at] = id << 4 | UInt8(truncatingIfNeeded: count - 1)
      at += 1
    }
  }

  @inlinable @_lifetime(target: copy target)
  static func storeText(
    _ text: ShortText?, _ id: UInt8, _ twoByte: Bool, _ at: inout Int, _ target: inout MutableSpan<UInt8>
  ) {
    guard let text, id != 0 else { return }
    storeElementHeader(id, text.count, twoByte, &at, &target)
    for index in 0..<text.count { target[at + index] = text[index] }
    at += text.count
  }
}
