import PalbeLiveKit
import PalbeProtobuf
import PalbeRTP
import PalbeSDP
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeSFUCore

@Suite("Several layers in one stream (SVC)")
struct LayersInOneStreamTests {
  static let kinds: [(LayeredStream.Codec, Bool)] = [
    (.vp9, true), (.vp9, false), (.av1, true), (.av1, false),
  ]

  @Test(
    "RFC 9628, AV1 RTP §A: the wanted size goes through with what it needs, every picture ends with a marker, nothing is missing and nothing undecodable, payloads are unchanged",
    arguments: kinds)
  func sizes(codec: LayeredStream.Codec, keyOnly: Bool) throws {
    let call = try LayeredStreamCall(LayeredStream(codec, keyOnly: keyOnly))
    try call.run(pictures: 90)
    #expect(call.shown(last: 30) == [Int](repeating: 2, count: 30))
    let high = call.decoder.byteCount
    try call.run(pictures: 60)
    let highCost = call.decoder.byteCount - high
    // Down: at once where every picture has all sizes in it, else with a key picture.
    let keys = call.stream.keyPictures
    try call.ask(.low)
    try call.run(pictures: 30)
    #expect((call.stream.keyPictures > keys) == keyOnly)
    #expect(call.shown(last: 25) == [Int](repeating: 0, count: 25))
    let low = call.decoder.byteCount
    try call.run(pictures: 60)
    let lowCost = call.decoder.byteCount - low
    #expect(lowCost * (keyOnly ? 2 : 5) < highCost, "\(lowCost) and \(highCost)")
    try call.ask(.medium)
    try call.run(pictures: 30)
    #expect(call.shown(last: 10) == [Int](repeating: 1, count: 10))
    try call.ask(.high)
    try call.run(pictures: 30)
    #expect(call.shown(last: 10) == [Int](repeating: 2, count: 10))
    #expect(call.decoder.faults == [])
    // Every picture was shown, without a pause at any change.
    let shown = call.decoder.shown.map(\.picture)
    #expect(zip(shown, shown.dropFirst()).allSatisfy { $1 - $0 == 1 }, "\(shown)")
    let sent = Set(call.stream.bodies)
    #expect(call.decoder.bodies.allSatisfy(sent.contains))
    #expect(call.world.reuses == 0 && call.bob.refused == 0)
    if codec == .av1 {
      let last = call.decoder.shown.suffix(2).map { LayerFrame(picture: $0.picture, size: 2) }
      #expect(call.decoder.distance(last[0], last[1]) == 3)
    }
  }

  @Test(
    "RFC 9628, AV1 RTP §A: what a link cannot carry of the largest size is left out by parts of the frames, and comes back",
    arguments: kinds)
  func parts(codec: LayeredStream.Codec, keyOnly: Bool) throws {
    var stream = LayeredStream(codec, keyOnly: keyOnly)
    stream.packets = [1, 1, 1]
    stream.byteCount = 600
    let call = try LayeredStreamCall(stream)
    try call.run(pictures: 150)
    #expect(call.decoder.shown.suffix(30).contains { $0.part == 2 && $0.size == 2 })
    // A size alone takes 162 kbit/s, all three 480.
    call.rate = .kilobitsPerSecond(keyOnly ? 110 : 300)
    try call.run(pictures: 240)
    let tight = call.decoder.shown.suffix(40)
    #expect(tight.allSatisfy { $0.part < 2 || $0.size < 2 }, "\(call.describe()) \(tight)")
    call.rate = .megabitsPerSecond(10)
    try call.run(pictures: 600)
    #expect(call.decoder.shown.suffix(30).contains { $0.part == 2 && $0.size == 2 })
    #expect(call.decoder.faults == [])
  }

  @Test(
    "AV1 RTP §A.4: one size in several parts of the frames is thinned out by the descriptor alone, H264 too",
    arguments: [LayeredStream.Codec.av1, .h264])
  func partsAlone(codec: LayeredStream.Codec) throws {
    var stream = LayeredStream(codec, keyOnly: false, sizes: 1)
    stream.packets = [2]
    stream.byteCount = 600
    let call = try LayeredStreamCall(stream)
    try call.run(pictures: 120)
    #expect(call.decoder.shown.suffix(8).map(\.part).contains(2))
    call.rate = .kilobitsPerSecond(100)
    try call.run(pictures: 240)
    #expect(
      call.decoder.shown.suffix(20).allSatisfy { $0.part == 0 },
      "\(call.describe()) \(call.decoder.shown.suffix(20))")
    let keys = call.stream.keyPictures
    call.rate = .megabitsPerSecond(10)
    try call.run(pictures: 600)
    #expect(call.decoder.shown.suffix(8).map(\.part).contains(2))
    #expect(call.stream.keyPictures == keys)
    #expect(call.decoder.faults == [])
    let sent = Set(call.stream.bodies)
    #expect(call.decoder.bodies.allSatisfy(sent.contains))
    // Frames refer to others by distances.
    let frames = call.decoder.shown.suffix(2).map { LayerFrame(picture: $0.picture, size: 0) }
    #expect(call.decoder.distance(frames[0], frames[1]) == 1)
  }

  @Test("VP9 without switching points: a key picture brings parts of the frames back")
  func partsWithoutSwitchingPoints() throws {
    var stream = LayeredStream(.vp9, keyOnly: true, sizes: 1)
    stream.packets = [2]
    stream.byteCount = 600
    stream.flagsSwitching = false
    let call = try LayeredStreamCall(stream)
    try call.run(pictures: 120)
    call.rate = .kilobitsPerSecond(100)
    try call.run(pictures: 240)
    #expect(
      call.decoder.shown.suffix(20).allSatisfy { $0.part == 0 },
      "\(call.describe()) \(call.decoder.shown.suffix(20))")
    call.rate = .megabitsPerSecond(10)
    try call.run(pictures: 700)
    #expect(call.decoder.shown.suffix(8).map(\.part).contains(2))
    #expect(call.decoder.faults == [])
  }

  @Test(
    "AV1 RTP §A.4: the descriptor tells which layers are left, in repairs too", arguments: [true, false])
  func active(keyOnly: Bool) throws {
    let call = try LayeredStreamCall(LayeredStream(.av1, keyOnly: keyOnly))
    try call.run(pictures: 60)
    let all = LayerSet(rawValue: 0x777)
    #expect(call.decoder.active == (keyOnly ? LayerSet(rawValue: 0x700) : all))
    try call.ask(.low)
    try call.run(pictures: 30)
    #expect(call.decoder.active == LayerSet(rawValue: 0x007))
    // The packet that told it first, again.
    let packets = call.bob.packets(payloadType: call.number)
    let telling = packets.last { packet in
      packet.header.extensionRange(id: 12, in: packet.bytes.span).map { $0.count > 3 } ?? false
    }
    let told = try #require(telling)
    let nack = GenericNACK(
      sender: SSRC(1), media: told.header.ssrc, sequenceNumbers: [told.header.sequenceNumber])
    call.world.send([try call.bob.controlPacket([.nack(nack)])], from: call.bob)
    call.world.run(for: .milliseconds(100))
    let repair = try #require(call.bob.packets(payloadType: call.number + 1).last)
    let (one, other) = (told.header, repair.header)
    let before = one.extensionRange(id: 12, in: told.bytes.span).map { Array(told.bytes[$0]) }
    let after = other.extensionRange(id: 12, in: repair.bytes.span).map { Array(repair.bytes[$0]) }
    #expect(before == after && before != nil)
    #expect(Array(repair.payload.dropFirst(2)) == told.payload)
    #expect(other.marker == one.marker)
  }

  @Test("The last packet of a picture is the last again when it is repaired", arguments: [true, false])
  func repairedMarker(rtx: Bool) throws {
    let call = try LayeredStreamCall(LayeredStream(.vp9, keyOnly: false), rtx: rtx)
    try call.ask(.low)
    try call.run(pictures: 30)
    #expect(call.decoder.faults == [] && call.shown(last: 3) == [0, 0, 0])
    let last = try #require(call.bob.packets(payloadType: call.number).last)
    #expect(last.header.marker)
    let count = call.bob.packets.count
    let refused = call.bob.refused
    let nack = GenericNACK(
      sender: SSRC(1), media: last.header.ssrc, sequenceNumbers: [last.header.sequenceNumber])
    call.world.send([try call.bob.controlPacket([.nack(nack)])], from: call.bob)
    call.world.run(for: .milliseconds(100))
    if rtx {
      #expect(call.bob.packets.dropFirst(count).map(\.header.marker) == [true])
    } else {
      // The same protected bytes, which the client's SRTP knows already.
      #expect(call.bob.refused == refused + 1)
    }
    #expect(call.world.reuses == 0)
  }

  @Test("Packets that come late find their place, and those of a left-out size fill theirs with nothing")
  func late() throws {
    for (codec, keyOnly) in Self.kinds {
      let call = try LayeredStreamCall(LayeredStream(codec, keyOnly: keyOnly))
      try call.ask(.medium)
      try call.run(pictures: 40)
      for held in 0..<6 {
        let datagrams = try call.stream.next(of: call.alice)
        for (index, datagram) in datagrams.enumerated() where index != held {
          call.world.send([datagram], from: call.alice)
        }
        call.world.run(for: .milliseconds(30))
        call.world.send([datagrams[held]], from: call.alice)
        call.world.run(for: .milliseconds(10))
      }
      try call.run(pictures: 3)
      let packets = call.bob.packets(payloadType: call.number).map(\.header.sequenceNumber)
      let first = try #require(packets.first)
      let numbers = packets.map { Int($0.distance(from: first)) }.sorted()
      #expect(numbers == Array(0..<packets.count))
      #expect(call.world.reuses == 0 && call.bob.refused == 0)
    }
  }

  @Test(
    "RFC 3711 §3.3.1: what fills the place of a late packet while others wait for the link has a number that no other packet gets"
  )
  func lateAmongWaiting() throws {
    var stream = LayeredStream(.vp9, keyOnly: true, sizes: 1)
    stream.packets = [8]
    stream.byteCount = 1_000
    let call = try LayeredStreamCall(stream)
    call.rate = .kilobitsPerSecond(60)
    try call.run(pictures: 60)
    let sid = try #require(call.bob.join?.otherParticipants.first?.tracks.first?.sid)
    var late: [[UInt8]] = []
    for number in 0..<200 {
      // A picture that is left out comes behind the next one that is not.
      if number % 9 == 8 {
        // What waits is given up when the video begins anew.
        for isDisabled in [true, false] {
          call.world.signal(
            .trackSetting(
              .with {
                $0.trackSids = [sid]
                $0.disabled = isDisabled
              }), from: call.bob)
        }
        call.stream.wantsKey = true
      }
      let datagrams = try call.stream.next(of: call.alice)
      if call.stream.sinceKey % 4 == 0 {
        call.world.send(datagrams, from: call.alice)
        call.world.run(for: .milliseconds(12))
        call.world.send(late, from: call.alice)
        late = []
      } else {
        late += datagrams
      }
      call.world.run(for: .milliseconds(10))
    }
    call.world.run(for: .seconds(1))
    let bob = try #require(call.world.worker.participants.first { $0.identity == "bob" })
    #expect(bob.downTransport.refusalCount == 0)
    #expect(call.world.reuses == 0 && call.bob.refused == 0)
  }

  @Test(
    "AV1 RTP §A.4: a size that the publisher stops sending, told by active targets, is replaced by the next one",
    arguments: [true, false])
  func stoppedSize(keyOnly: Bool) throws {
    let call = try LayeredStreamCall(LayeredStream(.av1, keyOnly: keyOnly))
    try call.run(pictures: 60)
    call.stream.sizes = 2
    call.stream.active = 0b000_111_111
    try call.run(pictures: 40)
    #expect(call.shown(last: 20) == [Int](repeating: 1, count: 20))
    call.stream.sizes = 3
    call.stream.active = nil
    call.stream.wantsKey = true
    try call.run(pictures: 40)
    #expect(call.shown(last: 20) == [Int](repeating: 2, count: 20))
    #expect(call.decoder.faults == [])
  }

  @Test(
    "RFC 9628: a size that the publisher stops sending is missed after eight pictures",
    arguments: [true, false])
  func vanishedSize(keyOnly: Bool) throws {
    let call = try LayeredStreamCall(LayeredStream(.vp9, keyOnly: keyOnly))
    try call.run(pictures: 60)
    call.stream.sizes = 2
    try call.run(pictures: 60)
    #expect(call.shown(last: 20) == [Int](repeating: 1, count: 20))
    call.stream.sizes = 3
    call.stream.wantsKey = true
    try call.run(pictures: 40)
    #expect(call.shown(last: 20) == [Int](repeating: 2, count: 20))
    #expect(call.decoder.faults == [])
  }

  @Test("Of two sizes the best quality is the larger one, and a picture's width finds its size")
  func twoSizes() throws {
    let call = try LayeredStreamCall(LayeredStream(.av1, keyOnly: false, sizes: 2))
    try call.run(pictures: 60)
    #expect(call.shown(last: 5) == [1, 1, 1, 1, 1])
    try call.ask(.medium)
    try call.run(pictures: 10)
    #expect(call.shown(last: 5) == [0, 0, 0, 0, 0])
    #expect(call.decoder.faults == [])
    let info = try #require(call.bob.join?.otherParticipants.first?.tracks.first)
    #expect(info.simulcast)
    #expect(info.codecs.first?.videoLayerMode == .multipleSpatialLayersPerStream)
    #expect(
      call.alice.messages.contains { if case .subscribedQualityUpdate = $0 { true } else { false } } == false)
    call.world.run(for: .seconds(6))
    let told = call.alice.messages.compactMap { message -> [Bool]? in
      guard case .subscribedQualityUpdate(let update) = message else { return nil }
      return update.subscribedCodecs.first?.qualities.map(\.enabled)
    }
    #expect(told.last == [true, true, false])
  }

  @Test("A descriptor that cannot be read stops nothing: the stream goes through whole")
  func unreadable() throws {
    let world = try World()
    let (alice, bob) = try CodecTests.call(world, CodecTests.av1, received: [CodecTests.av1])
    for number in 0..<10 {
      let first: UInt8 = number == 0 ? 0x18 : 0x10
      let garbage =
        number < 5
        ? [0xc0, 0, UInt8(number)] : [0xc0, 0, UInt8(number), 0x80] + CodecTests.noise(40, number)
      let payload = [first] + CodecTests.noise(100, number)
      world.send([try alice.describedMedia(garbage, payload: payload, marker: true)], from: alice)
      world.run(for: .milliseconds(20))
    }
    world.run(for: .milliseconds(50))
    #expect(bob.packets(payloadType: 45).count == 10)
  }
}
