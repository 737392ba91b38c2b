import PalbeUnits
import PalbeWire

@testable import PalbeFrameEncryption

/// What opening gave, with the bytes.
enum Opened: Equatable {
  case opened([UInt8])
  case waiting
  case failed(OpenFailure)
}

/// One participant with its ring; bytes in, bytes out.
final class Peer {
  var ring: CallKeyRing
  let identity: String

  init(
    _ identity: String, room: String = "room-1", call: String = "call-1",
    ledger: CallKeyLedger = CallKeyLedger(),
    seed: UInt64 = 1, configuration: CallKeyRing.Configuration = .init()
  ) throws {
    self.identity = identity
    ring = try CallKeyRing(
      room: room, call: call, localIdentity: identity, ledger: ledger, random: RandomSource(seed: seed),
      configuration: configuration)
  }

  func install(_ key: [UInt8], _ sending: SendSwitch = .automatic, at now: Instant = start) throws {
    try ring.install(key.span, sending: sending, at: now)
  }

  func sender(_ source: FrameSource = .camera, _ codec: FrameCodec = .vp8) throws -> FrameSenderID {
    try ring.makeSender(source: source, codec: codec)
  }

  func receiver(
    _ identity: String, _ source: FrameSource = .camera, _ codec: FrameCodec = .vp8, streams: Int = 1
  ) throws -> FrameReceiverID {
    try ring.makeReceiver(identity: identity, source: source, codec: codec, streams: streams)
  }

  func seal(_ id: FrameSenderID, _ frame: [UInt8], at now: Instant = start) throws -> [UInt8] {
    try [UInt8](capacity: frame.count + FrameSealer.maximumOverhead) { output throws(SealError) in
      try ring.seal(id, frame.span, into: &output, at: now)
    }
  }

  func open(_ id: FrameReceiverID, _ frame: [UInt8], tag: UInt64 = 0, at now: Instant = start) -> Opened {
    var bytes = frame
    var span = bytes.mutableSpan
    switch ring.open(id, in: &span, frame: 0..<frame.count, tag: tag, at: now) {
    case .opened(let range): return .opened(Array(bytes[range]))
    case .waiting: return .waiting
    case .failed(let failure): return .failed(failure)
    }
  }

  func counts(_ identity: String) -> FrameCounts? { ring.counts(identity: identity) }

  func released(at now: Instant) -> [ReleasedFrame] {
    var frames = [ReleasedFrame]()
    while let frame = ring.pollReleased(at: now) { frames.append(frame) }
    return frames
  }

  func events() -> [CallKeyEvent] {
    var events = [CallKeyEvent]()
    while let event = ring.pollEvent() { events.append(event) }
    return events
  }
}

let start = Instant(nanoseconds: 1_000_000_000)

/// A VP8 frame: three header bytes, the size on a key frame, then `count` bytes.
func vp8(key: Bool = false, _ count: Int = 100, fill: UInt8 = 7) -> [UInt8] {
  let head: [UInt8] = key ? [0x10, 2, 0, 0x9d, 1, 0x2a, 0x80, 2, 0xe0, 1] : [0x31, 4, 0]
  return head + [UInt8](repeating: fill, count: count)
}

/// A call key told apart by its number.
func callKey(_ number: UInt8) -> [UInt8] { [UInt8](repeating: number, count: 32) }

/// KID and CTR of a sealed VP8 delta frame, or of another with its clear bytes.
func header(of sealed: [UInt8], clear: Int = 3) throws -> SFrameHeader {
  try SFrameHeader.parse(sealed.span, at: clear)
}

func context(of sealed: [UInt8], clear: Int = 3) throws -> UInt64 {
  CallKeyID(rawValue: try header(of: sealed, clear: clear).keyID).context
}

func hex(_ text: String) -> [UInt8] { Hex.decode(text)! }
