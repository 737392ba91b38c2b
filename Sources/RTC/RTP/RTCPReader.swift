import PalbeUnits
import PalbeWire

/// Walks the packets of one compound RTCP datagram (RFC 3550 §6.1; reduced size per RFC 5506).
///
///     var reader = RTCPReader(datagram)
///     while let packet = try reader.next() { … }
///
/// When a packet's own body is malformed `next` throws and the walk can go on behind it; when its length or version
/// is, nothing is left to walk. What is allocated is bounded by the datagram's length, never by a count it claims.
public struct RTCPReader: ~Copyable, ~Escapable {
  let bytes: Span<UInt8>
  var offset = 0
  let readsNames: Bool

  /// Starts at the first packet.
  ///
  /// - Parameter readsNames: false leaves out what source descriptions say, which spares allocations: they come empty.
  @_lifetime(copy datagram)
  public init(_ datagram: Span<UInt8>, readsNames: Bool = true) {
    bytes = datagram
    self.readsNames = readsNames
  }

  /// The next packet, nil at the end.
  @_lifetime(self: copy self)
  public mutating func next() throws(WireError) -> RTCPPacket? {
    let left = bytes.count - offset
    guard left > 0 else { return nil }
    let start = offset
    offset = bytes.count  // whatever fails before the length is known ends the walk
    guard left >= 4 else { throw .truncated(needed: 4, have: left) }
    let first = bytes[start]
    guard first >> 6 == 2 else { throw .invalid(field: "RTCP version", value: UInt64(first >> 6)) }
    let size = 4 * (Int(bytes.uint16(at: start + 2)) + 1)
    guard size <= left else { throw .truncated(needed: size, have: left) }
    offset = start + size
    var end = offset
    if first & 0x20 != 0 {
      let padding = Int(bytes[end - 1])
      guard padding > 0, padding <= size - 4 else {
        throw .invalid(field: "RTCP padding", value: UInt64(padding))
      }
      end -= padding
    }
    if !readsNames, bytes[start + 1] == 202 { return .sourceDescription([]) }
    var body = ByteReader(bytes.extracting(start + 4..<end))
    return try Self.parse(type: bytes[start + 1], count: first & 0x1f, &body)
  }

  private static func parse(
    type: UInt8, count: UInt8, _ body: inout ByteReader
  ) throws(WireError) -> RTCPPacket {
    switch (type, count) {
    case (200, _): return .senderReport(try senderReport(count, &body))
    case (201, _):
      let ssrc = SSRC(try body.uint32())
      return .receiverReport(ReceiverReport(ssrc: ssrc, blocks: try blocks(count, &body)))
    case (202, _): return .sourceDescription(try sourceDescription(count, &body))
    case (203, _): return .goodbye(try goodbye(count, &body))
    case (205, 1): return .nack(try nack(&body))
    case (205, 15): return .transportFeedback(try TransportFeedback.parse(&body))
    case (206, 1):
      let sender = SSRC(try body.uint32())
      return .pictureLossIndication(sender: sender, media: SSRC(try body.uint32()))
    case (206, 4): return .fullIntraRequest(try fullIntraRequest(&body))
    case (206, 15): return try applicationFeedback(&body)
    default: return .unknown(packetType: type, format: count)
    }
  }

  private static func senderReport(
    _ count: UInt8, _ body: inout ByteReader
  ) throws(WireError) -> SenderReport {
    let ssrc = SSRC(try body.uint32())
    let ntpTime = NTPTime(rawValue: try body.uint64())
    let rtpTimestamp = RTPTimestamp(try body.uint32())
    let packetCount = try body.uint32()
    let octetCount = try body.uint32()
    return SenderReport(
      ssrc: ssrc, ntpTime: ntpTime, rtpTimestamp: rtpTimestamp, packetCount: packetCount,
      octetCount: octetCount, blocks: try blocks(count, &body))
  }

  private static func blocks(
    _ count: UInt8, _ body: inout ByteReader
  ) throws(WireError) -> [ReportBlock] {
    let needed = Int(count) * ReportBlock.byteCount
    guard needed <= body.remaining else { throw .truncated(needed: needed, have: body.remaining) }
    var blocks = [ReportBlock]()
    blocks.reserveCapacity(Int(count))
    for _ in 0..<count {
      let ssrc = SSRC(try body.uint32())
      let fractionLost = try body.uint8()
      let lost = try body.uint24()
      let signed = Int32(bitPattern: lost << 8) >> 8
      let highest = try body.uint32()
      let jitter = try body.uint32()
      let last = try body.uint32()
      blocks.append(
        ReportBlock(
          ssrc: ssrc, fractionLost: fractionLost, cumulativeLost: signed, highestSequence: highest,
          jitter: jitter, lastSenderReport: last, delaySinceLastSenderReport: try body.uint32()))
    }
    return blocks
  }

  private static func sourceDescription(
    _ count: UInt8, _ body: inout ByteReader
  ) throws(WireError) -> [SourceDescription] {
    var chunks = [SourceDescription]()
    for _ in 0..<count {
      let start = body.offset
      var chunk = SourceDescription(ssrc: SSRC(try body.uint32()), canonicalName: nil)
      while true {
        let type = try body.uint8()
        if type == 0 { break }
        let length = Int(try body.uint8())
        let text = try body.array(length)
        if type == 1 { chunk.canonicalName = String(decoding: text, as: UTF8.self) }
      }
      // The null items that end a chunk fill its last word.
      try body.skip((4 - (body.offset - start) % 4) % 4)
      chunks.append(chunk)
    }
    return chunks
  }

  private static func goodbye(_ count: UInt8, _ body: inout ByteReader) throws(WireError) -> Goodbye {
    var goodbye = Goodbye(sources: [])
    for _ in 0..<count { goodbye.sources.append(SSRC(try body.uint32())) }
    if !body.isAtEnd {
      let length = Int(try body.uint8())
      goodbye.reason = String(decoding: try body.array(length), as: UTF8.self)
    }
    return goodbye
  }

  private static func nack(_ body: inout ByteReader) throws(WireError) -> GenericNACK {
    let sender = SSRC(try body.uint32())
    var nack = GenericNACK(sender: sender, media: SSRC(try body.uint32()), items: [])
    nack.items.reserveCapacity(body.remaining / 4)
    while !body.isAtEnd {
      let first = SequenceNumber(try body.uint16())
      nack.items.append(GenericNACK.Item(first: first, following: try body.uint16()))
    }
    return nack
  }

  private static func fullIntraRequest(
    _ body: inout ByteReader
  ) throws(WireError) -> FullIntraRequest {
    var request = FullIntraRequest(sender: SSRC(try body.uint32()), entries: [])
    try body.skip(4)  // media source, unused (§4.3.1.2)
    while !body.isAtEnd {
      let ssrc = SSRC(try body.uint32())
      request.entries.append(FullIntraRequest.Entry(ssrc: ssrc, sequence: try body.uint8()))
      try body.skip(3)
    }
    return request
  }

  private static func applicationFeedback(_ body: inout ByteReader) throws(WireError) -> RTCPPacket {
    let sender = SSRC(try body.uint32())
    try body.skip(4)
    guard body.remaining >= 8, try body.uint32() == 0x5245_4d42 else {  // "REMB"
      return .unknown(packetType: 206, format: 15)
    }
    let word = try body.uint32()
    let count = Int(word >> 24)
    let exponent = UInt64(word >> 18 & 0x3f)
    let mantissa = UInt64(word & 0x3ffff)
    // 2^44 bit/s is far above any link; a larger exponent would only overflow.
    let limit: UInt64 = 1 << 44
    let rate = exponent > 44 ? (mantissa == 0 ? 0 : limit) : min(limit, mantissa << exponent)
    var estimate = ReceiverEstimate(
      sender: sender, rate: DataRate(bitsPerSecond: Int64(rate)), sources: [])
    for _ in 0..<count { estimate.sources.append(SSRC(try body.uint32())) }
    return .receiverEstimate(estimate)
  }
}
