import PalbeRTP
import PalbeUnits

/// An encoder of simulcast VP8 behind a scripted client: layers of given rates at 30 frames a second, and a key frame of
/// a layer whenever one is asked for.
struct LayeredSource {
  struct Layer {
    let rid: String
    let ssrc: SSRC
    var rate: DataRate
    var sequence: UInt16 = 9
    var timestamp: UInt32
    var pictureID: UInt16 = 3
    var layerZero: UInt8 = 0
    var wantsKeyFrame = true
    var keyFrames = 0
  }

  static let interval = TimeDelta.microseconds(33_333)
  var layers: [Layer]
  /// Two frames in four are of the upper layer, one of the middle one.
  var temporalLayers = 1
  var frame = 0
  private var random: RandomSource
  private var taken = 0

  init(_ rates: [DataRate], seed: UInt64) {
    random = RandomSource(seed: seed)
    let rids = rates.count == 1 ? ["f"] : ["q", "h", "f"]
    layers = rates.enumerated().map { index, rate in
      Layer(
        rid: rids[index], ssrc: SSRC(UInt32(71 + index)), rate: rate, timestamp: UInt32(1_000 * index + 77))
    }
  }

  /// What the SFU asked the client for since the last call.
  mutating func takeRequests(of client: ScriptedClient) {
    for packet in client.control[taken...] {
      guard case .pictureLossIndication(_, let media) = packet else { continue }
      for index in layers.indices where layers[index].ssrc == media { layers[index].wantsKeyFrame = true }
    }
    taken = client.control.count
  }

  /// The packets of the next frame of every layer.
  mutating func nextFrame(of client: ScriptedClient, at now: Instant) throws -> [[UInt8]] {
    takeRequests(of: client)
    var datagrams: [[UInt8]] = []
    for index in layers.indices { datagrams += try packets(index, client) }
    frame += 1
    return datagrams
  }

  /// The temporal layer of the frame at hand: 0 2 1 2.
  var temporalIndex: UInt8 {
    switch temporalLayers {
    case 1: 0
    case 2: UInt8(frame & 1)
    default: frame & 1 == 1 ? 2 : frame & 3 == 2 ? 1 : 0
    }
  }

  private mutating func packets(_ index: Int, _ client: ScriptedClient) throws -> [[UInt8]] {
    var layer = layers[index]
    defer { layers[index] = layer }
    var temporal = temporalIndex
    let isKeyFrame = layer.wantsKeyFrame
    if isKeyFrame {
      temporal = 0
      layer.keyFrames += 1
    }
    layer.wantsKeyFrame = false
    layer.timestamp &+= 3_000
    layer.pictureID = (layer.pictureID &+ 1) & 0x7fff
    if temporal == 0 { layer.layerZero &+= 1 }
    let average = Double(layer.rate.bitsPerSecond) / 8 / 30
    var left = Int(average * (isKeyFrame ? 4 : Double.random(in: 0.7...1.3, using: &random)))
    var datagrams: [[UInt8]] = []
    var isFirst = true
    repeat {
      let size = min(max(left, 60), 1_100)
      left -= size
      let header = RTPHeader(
        marker: left <= 0, payloadType: PayloadType(96), sequenceNumber: SequenceNumber(layer.sequence),
        timestamp: RTPTimestamp(layer.timestamp), ssrc: layer.ssrc)
      layer.sequence &+= 1
      var values = RTPExtensionValues()
      values.mid = ShortText(client.tracks[0].cid)
      values.rid = ShortText(layer.rid)
      var ids = RTPExtensionIDs()
      ids.mid = 4
      ids.rid = 10
      let descriptor = VP8PayloadDescriptor(
        startsPartition: isFirst, isNonReference: temporal == 2, pictureID: layer.pictureID,
        tl0PictureIndex: temporalLayers > 1 ? layer.layerZero : nil,
        temporalLayer: temporalLayers > 1 ? .init(index: temporal, isSync: frame & 3 != 3) : nil)
      let clear = [UInt8](capacity: 1_300) { output in
        RTPPacketWriter.writeHeader(header, extensions: values, ids: ids, into: &output)
        descriptor.write(into: &output)
        output.append(isKeyFrame ? 0x10 : 0x11)
        // The frame says which layer it is of.
        for _ in 0..<size - 1 { output.append(UInt8(truncatingIfNeeded: index)) }
      }
      datagrams.append(try client.protected(clear))
      isFirst = false
    } while left > 0
    return datagrams
  }
}
