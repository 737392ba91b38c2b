import PalbeRTP
import PalbeUnits
import PalbeWire
import Testing

@Suite("VP8 payload descriptor")
struct VP8PayloadDescriptorTests {
  @Test("RFC 7741 §4.2: every combination of fields is written and read")
  func roundTrip() throws {
    for flags in 0..<64 {
      let descriptor = VP8PayloadDescriptor(
        startsPartition: flags & 1 != 0, partitionIndex: UInt8(flags & 7), isNonReference: flags & 2 != 0,
        pictureID: flags & 4 != 0 ? 0x7abc : nil, tl0PictureIndex: flags & 8 != 0 ? 200 : nil,
        temporalLayer: flags & 16 != 0 ? .init(index: 2, isSync: true) : nil,
        keyIndex: flags & 32 != 0 ? 31 : nil)
      let bytes = written(8) { descriptor.write(into: &$0) }
      #expect(bytes.count == descriptor.byteCount)
      #expect(try VP8PayloadDescriptor.parse((bytes + [0xff]).span) == descriptor)
      for count in 0..<bytes.count {
        #expect(throws: WireError.self) { try VP8PayloadDescriptor.parse(bytes.span.extracting(0..<count)) }
      }
    }
  }

  @Test("RFC 7741 §4.2: bytes as a WebRTC sender writes them")
  func golden() throws {
    let descriptor = try VP8PayloadDescriptor.parse(hex("90 e0 f4d2 2a 60 10").span)
    #expect(descriptor.startsFrame && descriptor.byteCount == 6)
    #expect(
      descriptor.pictureID == 0x74d2 && descriptor.hasLongPictureID && descriptor.tl0PictureIndex == 0x2a)
    #expect(descriptor.temporalLayer == .init(index: 1, isSync: true) && descriptor.keyIndex == nil)
    let short = try VP8PayloadDescriptor.parse(hex("8080 7f 00").span)
    #expect(short.pictureID == 0x7f && !short.hasLongPictureID && short.byteCount == 3)
    #expect(try VP8PayloadDescriptor.parse(hex("10 01").span).byteCount == 1)
  }

  @Test("RFC 7741 §4.3: a key frame has P = 0 at the start of partition 0")
  func keyFrame() throws {
    func isKeyFrame(_ text: String) throws -> Bool {
      let payload = hex(text)
      return try VP8PayloadDescriptor.parse(payload.span).isKeyFrame(in: payload.span)
    }
    #expect(try isKeyFrame("10 10"))
    #expect(try !isKeyFrame("10 11"))
    #expect(try !isKeyFrame("00 10"))
    #expect(try !isKeyFrame("11 10"))
    #expect(try !isKeyFrame("10"))
    #expect(try isKeyFrame("9080 8001 10"))
  }

  @Test("Counters are rewritten in place; a 7-bit picture id stays one, absent ones stay absent")
  func rewrite() throws {
    func rewritten(_ text: String) throws -> String {
      var bytes = hex("aabb" + text)
      let descriptor = try VP8PayloadDescriptor.parse(bytes.span.extracting(2..<bytes.count))
      var span = bytes.mutableSpan
      try descriptor.rewrite(in: &span, at: 2, pictureID: 0x1234, tl0PictureIndex: 0x56)
      return Hex.encode(Array(bytes[2...]))
    }
    #expect(try rewritten("90e0 f4d2 2a 60 10") == "90e09234566010")
    #expect(try rewritten("9080 7f 11") == "90803411")
    #expect(try rewritten("9060 2a 60 10") == "9060566010")
    #expect(try rewritten("10 22") == "1022")
    var short = hex("90e0 f4d2")
    let descriptor = try VP8PayloadDescriptor.parse(hex("90e0 f4d2 2a 60").span)
    var span = short.mutableSpan
    #expect(throws: WireError.truncated(needed: 6, have: 4)) {
      try descriptor.rewrite(in: &span, at: 0, pictureID: 1, tl0PictureIndex: 1)
    }
  }
}

@Suite("VP8 packetizer and assembler")
struct VP8FrameTests {
  struct Sent {
    var header: RTPHeader
    var payload: [UInt8]
    var sequence: ExtendedSequenceNumber
  }

  /// Cuts frames into packets, numbered across the wrap of the sequence number.
  static func send(_ frames: [[UInt8]], maximum: Int = 100, first: UInt64 = 65_530) -> [Sent] {
    var packetizer = VP8Packetizer(maximumPayloadByteCount: maximum, firstPictureID: 0x7fff)
    var sent: [Sent] = []
    for (index, frame) in frames.enumerated() {
      var packets = packetizer.begin(frameByteCount: frame.count)
      while let packet = packets.next() {
        let sequence = ExtendedSequenceNumber(first + UInt64(sent.count))
        let payload = written(maximum) { output in
          packet.descriptor.write(into: &output)
          output.append(contentsOf: frame.span.extracting(packet.body))
        }
        let header = RTPHeader(
          marker: packet.marker, payloadType: PayloadType(96), sequenceNumber: sequence.truncated,
          timestamp: RTPTimestamp(UInt32(index) * 3_000), ssrc: SSRC(1))
        sent.append(Sent(header: header, payload: payload, sequence: sequence))
      }
    }
    return sent
  }

  /// Frames of random sizes; every tenth is a key frame.
  static func frames(_ count: Int, seed: UInt64) -> [[UInt8]] {
    var random = RandomSource(seed: seed)
    return (0..<count).map { index in
      var frame = random.bytes(Int.random(in: 1...900, using: &random))
      frame[0] = frame[0] & 0xfe | (index % 10 == 0 ? 0 : 1)
      return frame
    }
  }

  static func insert(_ sent: Sent, into assembler: inout VP8FrameAssembler) -> VP8FrameAssembler.Insertion {
    assembler.insert(sent.payload.span, header: sent.header, sequence: sent.sequence, at: .zero)
  }

  static func drain(_ assembler: inout VP8FrameAssembler) -> [[UInt8]] {
    var frames: [[UInt8]] = []
    while let frame = assembler.nextFrame() { frames.append(frame.bytes) }
    return frames
  }

  @Test("RFC 7741 §4.4: packets are nearly equal, start with S = 1 once, and end with the marker")
  func packets() {
    var packetizer = VP8Packetizer(maximumPayloadByteCount: 104, firstPictureID: 0x7fff)
    var packets = packetizer.begin(frameByteCount: 250)
    #expect(packets.count == 3)
    var all: [VP8FramePackets.Packet] = []
    while let packet = packets.next() { all.append(packet) }
    #expect(all.map(\.body) == [0..<84, 84..<167, 167..<250])
    #expect(all.map(\.marker) == [false, false, true])
    #expect(all.map(\.descriptor.startsPartition) == [true, false, false])
    #expect(all.allSatisfy { $0.descriptor.pictureID == 0x7fff })
    #expect(packetizer.nextPictureID == 0)
    #expect(packetizer.begin(frameByteCount: 0).count == 0 && packetizer.nextPictureID == 0)
    var exact = packetizer.begin(frameByteCount: 200)
    #expect(exact.count == 2 && exact.next()?.body == 0..<100)
  }

  @Test("Frames come back whole and in order however packets are shuffled", arguments: 0..<20)
  func shuffled(seed: Int) {
    var random = RandomSource(seed: UInt64(seed))
    let frames = Self.frames(40, seed: UInt64(seed))
    var sent = Self.send(frames)
    // The first packet of all comes first: nothing before it can be known to exist.
    for start in stride(from: 1, to: sent.count - 8, by: 8) {
      sent[start..<start + 8].shuffle(using: &random)
    }
    var assembler = VP8FrameAssembler()
    var received: [[UInt8]] = []
    for packet in sent {
      #expect(Self.insert(packet, into: &assembler) == .stored)
      #expect(Self.insert(packet, into: &assembler) == .old)
      received += Self.drain(&assembler)
    }
    #expect(received == frames)
    #expect(assembler.missing == nil)
  }

  @Test("A frame tells its picture id, numbers, time and key-frame bit")
  func frameFields() throws {
    let sent = Self.send(Self.frames(2, seed: 4))
    var assembler = VP8FrameAssembler()
    for (index, packet) in sent.enumerated() {
      assembler.insert(
        packet.payload.span, header: packet.header, sequence: packet.sequence,
        at: Instant.zero + .milliseconds(index))
    }
    let first = try unwrapped(assembler.nextFrame())
    let second = try unwrapped(assembler.nextFrame())
    #expect(first.isKeyFrame && !second.isKeyFrame)
    #expect(first.descriptor.pictureID == 0x7fff && second.descriptor.pictureID == 0)
    #expect(second.timestamp == RTPTimestamp(3_000))
    #expect(first.firstSequence == sent[0].sequence && second.lastSequence == sent[sent.count - 1].sequence)
    #expect(second.firstSequence.rawValue == first.lastSequence.rawValue + 1)
    #expect(second.completedAt == Instant.zero + .milliseconds(sent.count - 1))
  }

  @Test("A lost packet holds frames up until it comes, or until the owner skips to the next key frame")
  func loss() {
    let frames = Self.frames(25, seed: 1)
    let sent = Self.send(frames)
    let lost = sent.firstIndex { $0.header.timestamp == RTPTimestamp(3 * 3_000) } ?? 0
    var waiting = VP8FrameAssembler()
    for (index, packet) in sent.enumerated() where index != lost { _ = Self.insert(packet, into: &waiting) }
    #expect(Self.drain(&waiting) == Array(frames[..<3]))
    #expect(waiting.missing == sent[lost].sequence)
    _ = Self.insert(sent[lost], into: &waiting)
    #expect(Self.drain(&waiting) == Array(frames[3...]))
    var skipping = VP8FrameAssembler()
    for (index, packet) in sent.enumerated() where index != lost { _ = Self.insert(packet, into: &skipping) }
    _ = Self.drain(&skipping)
    #expect(skipping.skipToKeyFrame() == true)
    #expect(Self.drain(&skipping) == Array(frames[10...]))
    #expect(Self.insert(sent[lost], into: &skipping) == .old)
    #expect(skipping.skipToKeyFrame() == false)
  }

  @Test("Nothing is given out before a key frame")
  func startsAtKeyFrame() {
    let frames = Self.frames(15, seed: 2)
    let sent = Self.send(frames).filter { $0.header.timestamp.rawValue >= 4 * 3_000 }
    var assembler = VP8FrameAssembler()
    #expect(assembler.needsKeyFrame == true)
    var received: [[UInt8]] = []
    for packet in sent {
      _ = Self.insert(packet, into: &assembler)
      received += Self.drain(&assembler)
    }
    #expect(received == Array(frames[10...]))
    #expect(assembler.needsKeyFrame == false)
  }

  @Test("Padding fills its place between frames; a payload without a frame is malformed")
  func padding() {
    let frames = Self.frames(3, seed: 3)
    var sent = Self.send(frames, maximum: 1_000)
    #expect(sent.count == 3)
    for index in 1..<3 { sent[index].sequence = ExtendedSequenceNumber(sent[index].sequence.rawValue + 2) }
    var assembler = VP8FrameAssembler()
    for packet in sent { _ = Self.insert(packet, into: &assembler) }
    #expect(Self.drain(&assembler).count == 1)
    for offset in 1...2 as ClosedRange<UInt64> {
      let sequence = ExtendedSequenceNumber(sent[0].sequence.rawValue + offset)
      assembler.insert([UInt8]().span, header: sent[0].header, sequence: sequence, at: .zero)
    }
    #expect(Self.drain(&assembler).count == 2)
    let next = ExtendedSequenceNumber(70_000)
    for payload in [[0x90], [0x10], [UInt8](repeating: 0x10, count: 1_600)] {
      #expect(assembler.insert(payload.span, header: sent[0].header, sequence: next, at: .zero) == .malformed)
    }
  }

  @Test("A jump past the window starts again at a key frame, and old packets stay out")
  func jump() {
    let frames = Self.frames(30, seed: 5)
    let before = Self.send(Array(frames[..<2]), first: 100_000)
    let after = Self.send(Array(frames[20...]), first: 200_000)
    var assembler = VP8FrameAssembler(capacity: 128)
    for packet in before { _ = Self.insert(packet, into: &assembler) }
    #expect(Self.drain(&assembler).count == 2)
    #expect(Self.insert(after[0], into: &assembler) == .restarted)
    #expect(assembler.needsKeyFrame == true)
    for packet in after.dropFirst() { #expect(Self.insert(packet, into: &assembler) == .stored) }
    #expect(Self.drain(&assembler) == Array(frames[20...]))
    #expect(Self.insert(before[0], into: &assembler) == .old)
  }

  @Test("Frames without a marker end where the next one starts")
  func withoutMarker() {
    let frames = Self.frames(5, seed: 6)
    var assembler = VP8FrameAssembler()
    for var packet in Self.send(frames) {
      packet.header.marker = false
      _ = Self.insert(packet, into: &assembler)
    }
    #expect(Self.drain(&assembler) == Array(frames[..<4]))
  }

  @Test("A packet that starts no frame where one must start makes it wait for a key frame")
  func headless() {
    var sent = Self.send(Self.frames(2, seed: 7), maximum: 1_000)
    sent[1].payload[0] &= ~0x10
    var assembler = VP8FrameAssembler()
    for packet in sent { _ = Self.insert(packet, into: &assembler) }
    #expect(Self.drain(&assembler).count == 1)
    #expect(assembler.needsKeyFrame == true)
  }
}
