import PalbeUnits
import PalbeWire

extension RTCPPacket {
  /// The packets as one compound datagram. `unknown` writes nothing.
  public static func compound(_ packets: [RTCPPacket]) -> [UInt8] {
    var writer = ByteWriter(capacity: 128)
    for packet in packets { packet.write(into: &writer) }
    return writer.bytes
  }

  /// Appends the packet. Lists longer than the format can count are cut: 31 blocks, chunks or leaving sources, 255
  /// bytes of text.
  public func write(into writer: inout ByteWriter) {
    switch self {
    case .senderReport(let report):
      let blocks = report.blocks.prefix(31)
      Self.packet(type: 200, count: blocks.count, &writer) { writer in
        writer.uint32(report.ssrc.rawValue)
        writer.uint64(report.ntpTime.rawValue)
        writer.uint32(report.rtpTimestamp.rawValue)
        writer.uint32(report.packetCount)
        writer.uint32(report.octetCount)
        for block in blocks { block.write(into: &writer) }
      }
    case .receiverReport(let report):
      Self.writeReceiverReport(ssrc: report.ssrc, report.blocks.prefix(31), into: &writer)
    case .sourceDescription(let chunks):
      let chunks = chunks.prefix(31)
      Self.packet(type: 202, count: chunks.count, &writer) { writer in
        for chunk in chunks { chunk.write(into: &writer) }
      }
    case .goodbye(let goodbye):
      let sources = goodbye.sources.prefix(31)
      Self.packet(type: 203, count: sources.count, &writer) { writer in
        for source in sources { writer.uint32(source.rawValue) }
        guard let reason = goodbye.reason else { return }
        Self.append(text: reason, &writer)
      }
    case .nack(let nack):
      Self.packet(type: 205, count: 1, &writer) { writer in
        writer.uint32(nack.sender.rawValue)
        writer.uint32(nack.media.rawValue)
        for item in nack.items.prefix(16_000) {
          writer.uint16(item.first.rawValue)
          writer.uint16(item.following)
        }
      }
    case .transportFeedback(let feedback):
      var symbols: [UInt8] = []
      Self.write(feedback, using: &symbols, into: &writer)
    case .pictureLossIndication(let sender, let media):
      Self.packet(type: 206, count: 1, &writer) { writer in
        writer.uint32(sender.rawValue)
        writer.uint32(media.rawValue)
      }
    case .fullIntraRequest(let request):
      Self.packet(type: 206, count: 4, &writer) { writer in
        writer.uint32(request.sender.rawValue)
        writer.uint32(0)
        for entry in request.entries.prefix(8_000) {
          writer.uint32(entry.ssrc.rawValue)
          writer.uint32(UInt32(entry.sequence) << 24)
        }
      }
    case .receiverEstimate(let estimate):
      Self.packet(type: 206, count: 15, &writer) { writer in estimate.write(into: &writer) }
    case .unknown: break
    }
  }

  /// Appends a request to send packets again, in ascending order on the circle.
  public static func writeNACK(
    sender: SSRC, media: SSRC, _ sequenceNumbers: [SequenceNumber], into writer: inout ByteWriter
  ) {
    packet(type: 205, count: 1, &writer) { writer in
      writer.uint32(sender.rawValue)
      writer.uint32(media.rawValue)
      GenericNACK.forEachItem(of: sequenceNumbers) { item in
        writer.uint16(item.first.rawValue)
        writer.uint16(item.following)
      }
    }
  }

  /// Appends a receiver report of up to 31 blocks.
  public static func writeReceiverReport(
    ssrc: SSRC, _ blocks: ArraySlice<ReportBlock>, into writer: inout ByteWriter
  ) {
    packet(type: 201, count: blocks.count, &writer) { writer in
      writer.uint32(ssrc.rawValue)
      for block in blocks { block.write(into: &writer) }
    }
  }

  /// Appends a source description of one chunk.
  public static func write(_ chunk: SourceDescription, into writer: inout ByteWriter) {
    packet(type: 202, count: 1, &writer) { writer in chunk.write(into: &writer) }
  }

  /// Appends transport-wide feedback. `symbols` is memory for it.
  package static func write(
    _ feedback: TransportFeedback, using symbols: inout [UInt8], into writer: inout ByteWriter
  ) {
    packet(type: 205, count: 15, &writer) { writer in feedback.write(into: &writer, using: &symbols) }
  }

  /// Writes header and body, fills the last word with zeros, and puts the length into the header.
  private static func packet(
    type: UInt8, count: Int, _ writer: inout ByteWriter, _ body: (inout ByteWriter) -> Void
  ) {
    let start = writer.bytes.count
    writer.uint8(0x80 | UInt8(count & 0x1f))
    writer.uint8(type)
    writer.uint16(0)
    body(&writer)
    while (writer.bytes.count - start) % 4 != 0 { writer.uint8(0) }
    let words = (writer.bytes.count - start) / 4 - 1
    writer.bytes[start + 2] = UInt8(truncatingIfNeeded: words >> 8)
    writer.bytes[start + 3] = UInt8(truncatingIfNeeded: words)
  }

  /// A length byte and at most 255 bytes of UTF-8, cut between characters.
  fileprivate static func append(text: String, _ writer: inout ByteWriter) {
    var cut = text
    while cut.utf8.count > 255 { cut.removeLast() }
    writer.uint8(UInt8(cut.utf8.count))
    writer.append(utf8: cut)
  }
}

extension ReportBlock {
  fileprivate func write(into writer: inout ByteWriter) {
    writer.uint32(ssrc.rawValue)
    writer.uint8(fractionLost)
    writer.uint24(UInt32(bitPattern: cumulativeLost) & 0xff_ffff)
    writer.uint32(highestSequence)
    writer.uint32(jitter)
    writer.uint32(lastSenderReport)
    writer.uint32(delaySinceLastSenderReport)
  }
}

extension SourceDescription {
  fileprivate func write(into writer: inout ByteWriter) {
    let start = writer.bytes.count
    writer.uint32(ssrc.rawValue)
    if let canonicalName {
      writer.uint8(1)
      RTCPPacket.append(text: canonicalName, &writer)
    }
    repeat { writer.uint8(0) } while (writer.bytes.count - start) % 4 != 0
  }
}

extension ReceiverEstimate {
  fileprivate func write(into writer: inout ByteWriter) {
    let listed = sources.prefix(255)
    var mantissa = UInt64(max(0, rate.bitsPerSecond))
    var exponent: UInt64 = 0
    while mantissa > 0x3ffff {
      mantissa >>= 1
      exponent += 1
    }
    writer.uint32(sender.rawValue)
    writer.uint32(0)
    writer.append(utf8: "REMB")
    writer.uint32(UInt32(listed.count) << 24 | UInt32(exponent << 18) | UInt32(mantissa))
    for source in listed { writer.uint32(source.rawValue) }
  }
}
