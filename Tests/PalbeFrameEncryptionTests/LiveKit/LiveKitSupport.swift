import Foundation
import PalbeTestKit
import PalbeUnits
import PalbeWire

@testable import PalbeFrameEncryption

/// One participant with its LiveKit ring; bytes in, bytes out.
final class LiveKitPeer {
  var ring: LiveKitKeyRing

  init(
    _ identity: String, ledger: CallKeyLedger = CallKeyLedger(), seed: UInt64 = 1,
    _ configure: (inout LiveKitKeyRing.Configuration) -> Void = { _ in }
  ) {
    var configuration = LiveKitKeyRing.Configuration()
    configure(&configuration)
    ring = LiveKitKeyRing(
      localIdentity: identity, ledger: ledger, random: RandomSource(seed: seed), configuration: configuration)
  }

  func set(
    _ secret: String, index: Int = 0, identity: String? = nil,
    _ derivation: LiveKitKeyDerivation = .hkdf
  ) throws {
    try ring.setKey(
      try LiveKitKey(Array(secret.utf8).span, derivation: derivation), index: index, identity: identity)
  }

  func sender(_ codec: LiveKitFrameCodec = .vp8, ssrc: UInt32 = 0x1234) throws -> FrameSenderID {
    try ring.makeSender(codec: codec, ssrc: ssrc)
  }

  func receiver(_ identity: String, _ codec: LiveKitFrameCodec = .vp8) throws -> FrameReceiverID {
    try ring.makeReceiver(identity: identity, codec: codec)
  }

  func seal(
    _ id: FrameSenderID, _ frame: [UInt8], timestamp: UInt32 = 3_000
  ) throws -> [UInt8] {
    let room = LiveKitKeyRing.tailroom(forFrameOf: frame.count, codec: .h264)
    var bytes = frame + [UInt8](repeating: 0xee, count: room)
    var span = bytes.mutableSpan
    let range = try ring.seal(id, in: &span, frame: 0..<frame.count, timestamp: timestamp)
    return Array(bytes[range])
  }

  func open(_ id: FrameReceiverID, _ frame: [UInt8], at now: Instant = start) -> Opened {
    var bytes = frame
    var span = bytes.mutableSpan
    switch ring.open(id, in: &span, frame: 0..<frame.count, at: now) {
    case .opened(let range): return .opened(Array(bytes[range]))
    case .waiting: return .waiting
    case .failed(let failure): return .failed(failure)
    }
  }

  func counts(_ identity: String) -> FrameCounts? { ring.counts(identity: identity) }

  func events() -> [CallKeyEvent] {
    var events = [CallKeyEvent]()
    while let event = ring.pollEvent() { events.append(event) }
    return events
  }
}

/// Ada sends, Bob opens; both hold the same shared key unless told otherwise.
func livekitPair(
  _ codec: LiveKitFrameCodec = .vp8, keys: [String] = ["secret", "secret"],
  _ configure: (inout LiveKitKeyRing.Configuration) -> Void = { _ in }
) throws -> (ada: LiveKitPeer, bob: LiveKitPeer, track: FrameSenderID, source: FrameReceiverID) {
  let ada = LiveKitPeer("ada", seed: 1, configure)
  let bob = LiveKitPeer("bob", seed: 2, configure)
  try ada.set(keys[0])
  try bob.set(keys[1])
  return (ada, bob, try ada.sender(codec), try bob.receiver("ada", codec))
}

/// A frame of each codec: a key frame and another where the codec tells them apart.
func livekitFrames(_ codec: LiveKitFrameCodec, _ body: [UInt8]) -> [[UInt8]] {
  switch codec {
  case .audio: [[0x78] + body]
  case .vp8: [[0x10, 2, 0, 0x9d, 1, 0x2a, 0x80, 2, 0xe0, 1] + body, [0x31, 4, 0] + body]
  case .vp9: [[0x82] + body]
  case .h264:
    [
      hex("000000016742e01f8d8d400000000168ce06e20000000165b84004") + body, hex("00000001419a20") + body,
      hex("000000016742e01f"),
    ]
  case .h265:
    [hex("0000000140010c01000000014401c172000000012601af08") + body, hex("000000010201d008") + body]
  }
}

/// Values that PyPI `cryptography` computed from livekit-protocol.md §3 alone.
struct LiveKitGolden: Decodable {
  struct Derivation: Decodable {
    let kind, secret: String
    let key_bytes: Int
    let keys: [String]
  }
  struct Frame: Decodable {
    let codec, frame, sealed: String
    let ssrc, timestamp, count: UInt32
    let index, clear: Int
  }
  struct Packet: Decodable {
    let payload, iv, sealed: String
    let source, milliseconds, count: UInt32
    let index: Int
  }
  let key: String
  let derivations: [Derivation]
  let frames: [Frame]
  let data: [Packet]

  static func load() throws -> LiveKitGolden {
    try JSONDecoder().decode(
      LiveKitGolden.self,
      from: Vectors.golden("Tests/PalbeFrameEncryptionTests/Golden/livekit-frames.json"))
  }
}

func livekitCodec(_ name: String) -> LiveKitFrameCodec? {
  LiveKitFrameCodec.allCases.first { "\($0)" == name }
}
