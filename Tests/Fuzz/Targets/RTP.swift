import PalbeRTP
import PalbeUnits
import PalbeWire

extension FuzzTarget {
  /// A header that parses describes ranges inside the packet, and survives a rewrite and RTX.
  static let rtpPacket = FuzzTarget(name: "rtp-packet") { bytes in
    _ = PacketKind(bytes.span)
    _ = OpusPayload.samples(in: bytes.span)
    guard let header = try? RTPHeader.parse(bytes.span) else { return }
    let payload = header.payloadRange(in: bytes.span)
    precondition(payload.upperBound <= bytes.count && header.extensionRange.upperBound == payload.lowerBound)
    for index in 0..<header.csrcCount {
      precondition(header.contributingSource(index, in: bytes.span) != nil)
    }
    var target = [UInt8](repeating: 0, count: bytes.count)
    var span = target.mutableSpan
    let layout = try? RTPPacketWriter.rewriteHeader(
      of: bytes.span, parsed: header, as: header, extensions: RTPExtensionValues(), ids: RTPExtensionIDs(),
      into: &span)
    guard let layout else { preconditionFailure("a packet without extensions does not fit") }
    precondition(target[layout.headerByteCount..<layout.byteCount] == bytes[payload])
    var buffer = bytes + [0, 0]
    var room = buffer.mutableSpan
    let wrapped = try? RTX.wrap(
      &room, count: bytes.count, payloadType: PayloadType(97), ssrc: SSRC(9),
      sequenceNumber: SequenceNumber(1))
    guard let wrapped else { preconditionFailure("a packet that parses does not wrap") }
    let count = try? RTX.unwrap(&room, count: wrapped, payloadType: header.payloadType, ssrc: header.ssrc)
    precondition(count == bytes.count)
    precondition(Array(buffer[..<bytes.count]) == bytes, "RTX does not round-trip")
  }

  /// Elements lie inside the packet, and what is read is written and read again.
  static let headerExtensions = FuzzTarget(name: "header-extensions") { bytes in
    guard let header = try? RTPHeader.parse(bytes.span) else { return }
    var elements = RTPExtensionIterator(header)
    while let element = elements.next(in: bytes.span) {
      precondition(element.range.upperBound <= header.headerByteCount && element.id != 0)
    }
    var ids = RTPExtensionIDs()
    ids.audioLevel = 1
    ids.videoOrientation = 2
    ids.absoluteSendTime = 3
    ids.transportSequenceNumber = 4
    ids.mid = 5
    ids.rid = 6
    ids.repairedRID = 200
    let values = ids.read(header, in: bytes.span)
    var target = [UInt8](repeating: 0, count: bytes.count + 128)
    var span = target.mutableSpan
    let layout = try? RTPPacketWriter.rewriteHeader(
      of: bytes.span, parsed: header, as: header, extensions: values, ids: ids, into: &span)
    guard let layout, let again = try? RTPHeader.parse(target.span.extracting(0..<layout.byteCount)) else {
      preconditionFailure("a rewritten packet does not parse")
    }
    precondition(ids.read(again, in: target.span) == values)
  }

  /// Every packet that is read is written and read again to the same value.
  static let rtcpCompound = FuzzTarget(name: "rtcp-compound") { bytes in
    var reader = RTCPReader(bytes.span)
    for _ in 0...bytes.count {
      do throws(WireError) {
        guard let packet = try reader.next() else { return }
        if case .nack(let nack) = packet { _ = nack.sequenceNumbers }
        if case .unknown = packet { continue }
        var again = RTCPReader(RTCPPacket.compound([packet]).span)
        _ = try again.next()
      } catch { continue }
    }
    preconditionFailure("more packets than bytes")
  }

  /// Feedback that is read lists no more arrivals than it has bytes, and comes back from its own bytes.
  static let transportFeedback = FuzzTarget(name: "transport-feedback") { bytes in
    var reader = RTCPReader(bytes.span)
    guard let packet = try? reader.next(), case .transportFeedback(let feedback) = packet else { return }
    precondition(feedback.arrivals.count <= bytes.count)
    for arrival in feedback.arrivals { _ = feedback.arrivalTime(of: arrival) }
    let written = RTCPPacket.compound([packet])
    var again = RTCPReader(written.span)
    precondition((try? again.next()) == packet, "feedback does not round-trip")
  }

  /// A descriptor that parses is written in as many bytes or fewer, and can be rewritten in place.
  static let vp8Descriptor = FuzzTarget(name: "vp8-descriptor") { bytes in
    guard let descriptor = try? VP8PayloadDescriptor.parse(bytes.span) else { return }
    _ = descriptor.isKeyFrame(in: bytes.span)
    let written = [UInt8](capacity: 8) { output in descriptor.write(into: &output) }
    precondition(written.count <= descriptor.byteCount && descriptor.byteCount <= bytes.count)
    var buffer = bytes
    var span = buffer.mutableSpan
    guard (try? descriptor.rewrite(in: &span, at: 0, pictureID: 5, tl0PictureIndex: 6)) != nil else {
      preconditionFailure("a descriptor that parses cannot be rewritten")
    }
    guard let again = try? VP8PayloadDescriptor.parse(buffer.span) else {
      preconditionFailure("a rewritten descriptor does not parse")
    }
    precondition(again.byteCount == descriptor.byteCount)
    precondition(again.pictureID == descriptor.pictureID.map { _ in 5 })
  }

  /// What is read of a payload without decoding it; VP9's counters can be rewritten in place.
  static let payloadHeaders = FuzzTarget(name: "payload-headers") { bytes in
    _ = KeyFrameStart.isH264(bytes.span)
    _ = KeyFrameStart.isAV1(bytes.span)
    if let offset = RedundantAudio.primaryOffset(in: bytes.span), offset > bytes.count {
      fatalError("the primary block lies beyond the packet")
    }
    guard let descriptor = try? VP9PayloadDescriptor.parse(bytes.span) else { return }
    var packet = bytes
    var span = packet.mutableSpan
    try? descriptor.rewrite(in: &span, at: 0, pictureID: 0x1555, tl0PictureIndex: 0xaa)
    guard let again = try? VP9PayloadDescriptor.parse(packet.span),
      again.temporalLayer == descriptor.temporalLayer, again.startsKeyFrame == descriptor.startsKeyFrame
    else { fatalError("other counters made another descriptor") }
  }

  /// Descriptors one behind the other, each behind its length: what is read stays in bounds, and with other active layers says
  /// the same of its frame.
  static let dependencyDescriptor = FuzzTarget(name: "dependency-descriptor") { bytes in
    var structure = FrameDependencyStructure()
    var at = 0
    while at < bytes.count {
      let end = min(bytes.count, at + 1 + Int(bytes[at]))
      let data = Array(bytes[at + 1..<end])
      at = end
      guard var before = try? DependencyDescriptor.parse(data.span, with: &structure) else { continue }
      let active = LayerSet(rawValue: structure.layers.rawValue & 0x0f0f_0f0f)
      var target = [UInt8](repeating: 0, count: data.count + 8)
      var span = target.mutableSpan
      guard
        let count = try? DependencyDescriptor.rewrite(
          data.span, with: structure, active: active, into: &span)
      else {
        demand(data.count > 250, "what was read is not written again")
        continue
      }
      guard
        let after = try? DependencyDescriptor.parse(Array(target[..<count]).span, with: &structure)
      else { fatalError("what was written is not read") }
      demand(after.active == active, "other layers are active")
      before.active = active
      demand(after == before, "more than the active layers changed")
      for layer in 0..<32 as Range<UInt8> {
        demand(structure.covered(by: layer).isSubset(of: structure.layers), "a layer that is not there")
      }
    }
  }

  /// A script of packets: step, flags and length, then that many bytes. Frames stay in order and within bounds.
  static let vp8Assembler = FuzzTarget(name: "vp8-assembler") { bytes in
    var assembler = VP8FrameAssembler(capacity: 32)
    var number: UInt64 = 1 << 16
    var last: UInt64 = 0
    var at = 0
    while at + 3 <= bytes.count {
      let step = Int(Int8(bitPattern: bytes[at]))
      let flags = bytes[at + 1]
      let end = min(bytes.count, at + 3 + Int(bytes[at + 2]))
      number = UInt64(max(0, Int(number) + step * (flags & 0x80 != 0 ? 100 : 1)))
      let header = RTPHeader(
        marker: flags & 1 != 0, payloadType: PayloadType(96), sequenceNumber: SequenceNumber(0),
        timestamp: RTPTimestamp(UInt32(flags >> 1 & 7)), ssrc: SSRC(1))
      assembler.insert(
        bytes.span.extracting(at + 3..<end), header: header, sequence: ExtendedSequenceNumber(number),
        at: .zero)
      if flags & 0x40 != 0 { _ = assembler.skipToKeyFrame() }
      _ = assembler.missing
      while let frame = assembler.nextFrame() {
        precondition(frame.firstSequence.rawValue >= last && frame.lastSequence >= frame.firstSequence)
        precondition(!frame.bytes.isEmpty && frame.bytes.count <= 32 * 1_500)
        last = frame.lastSequence.rawValue + 1
      }
      at = end
    }
  }
}
