import PalbeCongestion
import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeRTP
import PalbeSDP
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeSFUCore

/// A frame of one layer, and what may be decoded of it.
struct LayerFrame: Hashable {
  var picture: Int
  var size: Int
}

/// An encoder of several layers in one stream behind a scripted client: 30 pictures a second of up to three sizes, parts of the
/// frames 0 2 1 2, a key picture whenever one is asked for.
struct LayeredStream {
  enum Codec { case vp9, av1, h264 }

  let codec: Codec
  /// Larger sizes need the smaller ones in key pictures alone (L3T3_KEY), else in all (L3T3).
  let isKeyOnly: Bool
  var sizes: Int
  var parts = 3
  /// Sizes of the stream; `sizes` may be fewer for a while.
  let allSizes: Int
  /// Packets of a frame of each size, and their bytes.
  var packets = [1, 2, 3]
  var byteCount = 300
  /// Where the codec's own descriptor tells it: VP9's flag that a receiver may go up here.
  var flagsSwitching = true
  /// Tells which sizes are active, in the dependency descriptor.
  var active: UInt32?
  var wantsKey = true
  private(set) var keyPictures = 0
  private(set) var picture = -1
  private(set) var sinceKey = 0
  /// What each packet carries behind its descriptor.
  private(set) var bodies: [[UInt8]] = []
  private var frameNumber: UInt16 = 0xfff0
  private var pictureID: UInt16 = 0x7ff0
  private var layerZero: UInt8 = 250
  private var taken = 0
  private var structure: DescriptorWriter

  init(_ codec: Codec, keyOnly: Bool, sizes: Int = 3) {
    self.codec = codec
    isKeyOnly = keyOnly
    self.sizes = sizes
    allSizes = sizes
    structure = Self.structure(sizes: sizes, keyOnly: keyOnly)
  }

  /// Templates for each size: key, T0, T1, T2; a decode target for each layer.
  static func structure(sizes: Int, keyOnly: Bool) -> DescriptorWriter {
    var templates: [DescriptorWriter.Template] = []
    for size in 0..<sizes {
      for kind in 0..<4 {
        let part = max(0, kind - 1)
        var text = ""
        for target in 0..<sizes {
          for targetPart in 0..<3 {
            let isHigher = target > size && (kind == 0 || !keyOnly)
            let letter = target == size ? (kind == 3 ? "D" : "S") : kind == 0 ? "S" : "R"
            text += targetPart >= part && (target == size || isHigher) ? letter : "-"
          }
        }
        templates.append(.init(size, part, text, kind == 0 ? [] : [1]))
      }
    }
    return DescriptorWriter(templates)
  }

  /// The part of the frames that the next picture belongs to.
  private var nextPart: Int {
    switch parts {
    case 1: 0
    case 2: sinceKey & 1
    default: sinceKey & 1 == 1 ? 2 : sinceKey & 3 == 2 ? 1 : 0
    }
  }

  /// What the SFU asked the client for since the last call.
  mutating func takeRequests(of client: ScriptedClient) {
    let asked = client.control[taken...].contains {
      if case .pictureLossIndication = $0 { true } else { false }
    }
    if asked { wantsKey = true }
    taken = client.control.count
  }

  /// The packets of the next picture.
  mutating func next(of client: ScriptedClient) throws -> [[UInt8]] {
    takeRequests(of: client)
    picture += 1
    sinceKey = wantsKey ? 0 : sinceKey + 1
    let isKey = wantsKey
    wantsKey = false
    if isKey {
      keyPictures += 1
      structure.offset = (structure.offset + structure.templates.count) % 64
    }
    let part = isKey ? 0 : nextPart
    pictureID = (pictureID &+ 1) & 0x7fff
    if part == 0 { layerZero &+= 1 }
    client.tracks[0].timestamp &+= 3_000
    var datagrams: [[UInt8]] = []
    for size in 0..<sizes {
      frameNumber &+= 1
      for index in 0..<packets[size] {
        datagrams.append(try packet(size, part, index, isKey: isKey, client))
      }
    }
    return datagrams
  }

  private mutating func packet(
    _ size: Int, _ part: Int, _ index: Int, isKey: Bool, _ client: ScriptedClient
  ) throws -> [UInt8] {
    let starts = index == 0
    let ends = index == packets[size] - 1
    var body = [UInt8(truncatingIfNeeded: picture >> 8), UInt8(truncatingIfNeeded: picture)]
    body += [UInt8(size), UInt8(part), isKey ? 1 : 0, UInt8(index), UInt8(packets[size])]
    body += CodecTests.noise(byteCount, picture * 7 + size * 3 + index)
    bodies.append(body)
    let isLast = ends && size == sizes - 1
    switch codec {
    case .vp9:
      let isUnusedAbove = isKeyOnly && !isKey || size == allSizes - 1
      let hasStructure = isKey && size == 0 && starts
      let first: UInt8 =
        0xa0 | (isKey ? 0 : 0x40) | (starts ? 8 : 0) | (ends ? 4 : 0) | (hasStructure ? 2 : 0)
        | (isUnusedAbove ? 1 : 0)
      let layer =
        UInt8(part << 5) | (flagsSwitching && part < 2 ? 0x10 : 0) | UInt8(size << 1) | (size > 0 ? 1 : 0)
      var payload = [
        first, 0x80 | UInt8(pictureID >> 8), UInt8(truncatingIfNeeded: pictureID), layer, layerZero,
      ]
      if hasStructure { payload.append(UInt8((sizes - 1) << 5)) }
      return try client.media(0, payload: payload + body, marker: isLast)
    case .av1, .h264:
      let template = 4 * size + (isKey ? 0 : part + 1)
      let isFirst = isKey && size == 0 && starts
      // AV1's aggregation header, or that of a NAL unit.
      let start: UInt8 = codec == .av1 ? (isFirst ? 0x18 : 0x10) : isFirst ? 0x67 : 0x41
      let descriptor = structure.descriptor(
        template: template, number: frameNumber, starts: starts, ends: ends, withStructure: isFirst,
        active: starts && size == 0 ? active : nil)
      return try client.describedMedia(
        descriptor, payload: [start] + body, marker: isLast)
    }
  }
}

extension ScriptedClient {
  /// One protected packet of the first track with a dependency descriptor.
  func describedMedia(_ descriptor: [UInt8], payload: [UInt8], marker: Bool) throws -> [UInt8] {
    let header = RTPHeader(
      marker: marker, payloadType: tracks[0].payloadType, sequenceNumber: SequenceNumber(tracks[0].sequence),
      timestamp: RTPTimestamp(tracks[0].timestamp), ssrc: tracks[0].ssrc)
    tracks[0].sequence &+= 1
    var clear = [UInt8](capacity: 200) { output in RTPPacketWriter.writeHeader(header, into: &output) }
    clear[0] |= 0x10
    let elements = [12, UInt8(descriptor.count)] + descriptor
    let words = (elements.count + 3) / 4
    clear += [0x10, 0, UInt8(words >> 8), UInt8(words & 0xff)] + elements
    clear += [UInt8](repeating: 0, count: 4 * words - elements.count)
    return try protected(clear + payload)
  }
}

/// Decodes what a subscriber got of a layered stream, as far as one can without a picture: what refers to what.
struct LayerDecoder {
  let codec: LayeredStream.Codec
  let isKeyOnly: Bool
  private(set) var decoded: Set<LayerFrame> = []
  private var lastBase: [Int: Int] = [:]
  private(set) var shown: [(picture: Int, size: Int, part: Int)] = []
  private(set) var faults: [String] = []
  /// Packets of the frame in hand.
  private var left = 0
  private var top: (picture: Int, size: Int, part: Int)?
  private var lastSequence: SequenceNumber?
  private(set) var bodies: [[UInt8]] = []
  private(set) var byteCount = 0
  private var structure = FrameDependencyStructure()
  private(set) var active: LayerSet?
  private var frameNumbers: [LayerFrame: UInt16] = [:]

  init(_ codec: LayeredStream.Codec, keyOnly: Bool) {
    self.codec = codec
    isKeyOnly = keyOnly
  }

  /// Takes packets in the order of their numbers.
  mutating func take(_ packets: [ReceivedPacket]) throws {
    for packet in packets {
      if let lastSequence {
        let step = packet.header.sequenceNumber.distance(from: lastSequence)
        if step != 1 { faults.append("a step of \(step) in sequence numbers") }
      }
      lastSequence = packet.header.sequenceNumber
      byteCount += packet.bytes.count
      if !packet.payload.isEmpty { try take(packet) }
    }
  }

  private mutating func take(_ packet: ReceivedPacket) throws {
    let payload = packet.payload
    var clear = 1
    if codec == .vp9 {
      clear = payload[0] & 2 == 0 ? 5 : 6
    } else {
      try describe(packet)
    }
    let body = Array(payload[clear...])
    bodies.append(body)
    let (picture, size, part) = (Int(body[0]) << 8 | Int(body[1]), Int(body[2]), Int(body[3]))
    if let top, top.picture != picture { faults.append("picture \(top.picture) has no end") }
    if body[5] == 0 {
      decode(LayerFrame(picture: picture, size: size), part: part, isKey: body[4] == 1)
      left = Int(body[6])
    }
    left -= 1
    top = (picture, size, part)
    guard packet.header.marker else { return }
    if left != 0 { faults.append("picture \(picture) ends inside a frame") }
    shown.append((picture, size, part))
    top = nil
  }

  private mutating func decode(_ frame: LayerFrame, part: Int, isKey: Bool) {
    var needed: [LayerFrame] = []
    if isKey {
      if frame.size > 0 { needed.append(LayerFrame(picture: frame.picture, size: frame.size - 1)) }
    } else {
      let before =
        switch part {
        case 0, 1: lastBase[frame.size] ?? -1
        default: frame.picture - 1
        }
      needed.append(LayerFrame(picture: before, size: frame.size))
      if !isKeyOnly, frame.size > 0 {
        needed.append(LayerFrame(picture: frame.picture, size: frame.size - 1))
      }
    }
    for other in needed where !decoded.contains(other) {
      faults.append("picture \(frame.picture), size \(frame.size) needs \(other)")
    }
    decoded.insert(frame)
    if part == 0 { lastBase[frame.size] = frame.picture }
  }

  private mutating func describe(_ packet: ReceivedPacket) throws {
    guard let range = packet.header.extensionRange(id: 12, in: packet.bytes.span) else {
      return faults.append("no dependency descriptor")
    }
    let descriptor = try DependencyDescriptor.parse(packet.bytes.span.extracting(range), with: &structure)
    if descriptor.hasStructure { active = structure.layers }
    if let told = descriptor.active { active = told }
    let body = packet.payload.dropFirst()
    let frame = LayerFrame(
      picture: Int(body[1]) << 8 | Int(body[2]), size: Int(descriptor.spatialLayer))
    frameNumbers[frame] = descriptor.frameNumber
    if let active, !descriptor.needed.isSubset(of: active), descriptor.needed.isDisjoint(with: active) {
      faults.append("picture \(frame.picture): a frame of layers that are not active")
    }
  }

  /// How far two frames' numbers are apart.
  func distance(_ one: LayerFrame, _ other: LayerFrame) -> UInt16? {
    guard let first = frameNumbers[one], let second = frameNumbers[other] else { return nil }
    return second &- first
  }
}

/// Alice publishes one layered stream to Bob, who says in REMB what his link carries.
final class LayeredStreamCall {
  let world: World
  let alice: ScriptedClient
  let bob: ScriptedClient
  var stream: LayeredStream
  var decoder: LayerDecoder
  /// What Bob's link carries.
  var rate = DataRate.megabitsPerSecond(10)
  private var nextPicture: Instant
  private var nextReport: Instant
  private var received = 0
  let number: UInt8

  init(
    _ stream: LayeredStream, seed: UInt64 = 1, encryption: LiveKitEncryption = .custom, rtx: Bool = true
  ) throws {
    let world = try World(seed: seed)
    let codec =
      switch stream.codec {
      case .vp9: CodecTests.vp9
      case .av1: CodecTests.av1
      case .h264: CodecTests.h264
      }
    number = codec.payloadType.rawValue
    let alice = try world.client("alice")
    alice.moreCodecs = [codec]
    var track = world.track("cam", .video)
    track.codec = codec.name.lowercased()
    track.number = number
    track.encryption = encryption
    alice.tracks = [track]
    world.join(
      alice,
      request: { request in
        request.addTrackRequests[0].layers = (0..<stream.allSizes).map { index in
          let quality = 3 - stream.allSizes + index
          return .with {
            $0.quality = .init(rawValue: Int32(quality))
            $0.width = UInt32(320 << quality)
            $0.height = UInt32(180 << quality)
          }
        }
      })
    try #require(world.connect(alice))
    let bob = try world.client("bob")
    bob.offersTransportFeedback = false
    bob.moreCodecs =
      [codec]
      + (rtx
        ? [RTPCodec(number + 1, "rtx", clockRate: 90_000, parameters: "apt=\(number)")]
        : [])
    for index in bob.moreCodecs.indices { bob.moreCodecs[index].feedback += index == 0 ? ["goog-remb"] : [] }
    bob.moreCodecs[0].feedback.removeAll { $0 == "transport-cc" }
    world.join(bob)
    try #require(world.connect(bob))
    (self.world, self.alice, self.bob, self.stream) = (world, alice, bob, stream)
    decoder = LayerDecoder(stream.codec, keyOnly: stream.isKeyOnly)
    nextPicture = world.now
    nextReport = world.now
  }

  /// Lets the call go on for a number of pictures.
  func run(pictures: Int, dropping isDropped: (Int) -> Bool = { _ in false }) throws {
    for _ in 0..<pictures {
      if world.now >= nextReport {
        nextReport += .milliseconds(500)
        let estimate = ReceiverEstimate(sender: SSRC(1), rate: rate, sources: [SSRC(7)])
        world.send([try bob.controlPacket([.receiverEstimate(estimate)])], from: bob)
      }
      let datagrams = try stream.next(of: alice)
      for (index, datagram) in datagrams.enumerated() where !isDropped(index) {
        world.send([datagram], from: alice)
      }
      nextPicture += .microseconds(33_333)
      world.run(for: nextPicture - world.now)
      try read()
    }
  }

  func read() throws {
    let packets = bob.packets(payloadType: number)
    try decoder.take(Array(packets[received...]))
    received = packets.count
  }

  func ask(_ quality: LiveKitQuality) throws {
    let sid = try #require(bob.join?.otherParticipants.first?.tracks.first?.sid)
    world.signal(
      .trackSetting(
        .with {
          $0.trackSids = [sid]
          $0.quality = quality
        }), from: bob)
  }

  func describe() -> String {
    guard let participant = world.worker.participants.first(where: { $0.identity == "bob" }),
      let track = participant.downlink.downTracks.first
    else { return "" }
    let rates = track.track.layerRates(at: world.now)
    return
      "budget \(participant.link.budget(at: world.now)?.bitsPerSecond ?? -1) fitting \(String(describing: track.fitting)) rates \((0..<3).map { s in (0..<4).map { rates[s, $0].bitsPerSecond / 1000 } })"
  }

  /// What was shown of the last pictures.
  func shown(last count: Int) -> [Int] { decoder.shown.suffix(count).map(\.size) }
}

typealias LiveKitEncryption = LiveKit.EncryptionType
typealias LiveKitQuality = LiveKit.VideoQuality
