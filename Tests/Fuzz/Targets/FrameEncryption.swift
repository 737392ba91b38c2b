import PalbeFrameEncryption
import PalbeUnits
import PalbeWire

extension FuzzTarget {
  /// What parses has one spelling: it encodes to the bytes it came from.
  static let sframeHeader = FuzzTarget(name: "sframe-header") { bytes in
    guard let header = try? SFrameHeader.parse(bytes.span) else { return }
    precondition(header.encoded == Array(bytes.prefix(header.byteCount)), "\(header) has two spellings")
  }

  /// Arbitrary frames, and a genuine frame with arbitrary changes: only the genuine one opens.
  ///
  /// Input: one byte that picks codec and source, then the frame, or what is XORed into the genuine one.
  static let sealedFrame = FuzzTarget(name: "sealed-frame") { bytes in
    guard let pick = bytes.first else { return }
    let codec = FrameCodec.allCases[Int(pick & 3) % FrameCodec.allCases.count]
    let source = FrameSource.allCases[Int(pick >> 2 & 7) % FrameSource.allCases.count]
    let payload = Array(bytes.dropFirst())
    do {
      let now = Instant(nanoseconds: 1)
      let key = [UInt8](repeating: 1, count: 32)
      var ada = try CallKeyRing(
        room: "r", call: "c", localIdentity: "ada", ledger: CallKeyLedger(), random: RandomSource(seed: 1))
      var bob = try CallKeyRing(
        room: "r", call: "c", localIdentity: "bob", ledger: CallKeyLedger(), random: RandomSource(seed: 2))
      try ada.install(key.span, sending: .now, at: now)
      try bob.install(key.span, sending: .now, at: now)
      let track = try ada.makeSender(source: source, codec: codec)
      let receiver = try bob.makeReceiver(identity: "ada", source: source, codec: codec)
      let frame = [0x31 ^ pick >> 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
      let genuine = try [UInt8](capacity: 100) { output throws(SealError) in
        try ada.seal(track, frame.span, into: &output, at: now)
      }

      var arbitrary = payload
      let count = arbitrary.count
      var span = arbitrary.mutableSpan
      if case .opened = bob.open(receiver, in: &span, frame: 0..<count, at: now) {
        precondition(payload == genuine, "a made-up frame opens")
        return
      }

      var changed = genuine
      for index in 0..<min(payload.count, changed.count) { changed[index] ^= payload[index] }
      let isGenuine = changed == genuine
      let size = changed.count
      var changedSpan = changed.mutableSpan
      let result = bob.open(receiver, in: &changedSpan, frame: 0..<size, at: now)
      if case .opened(let range) = result {
        precondition(isGenuine && Array(changed[range]) == frame, "a changed frame opens")
      } else {
        precondition(!isGenuine, "the genuine frame does not open")
      }
    } catch {
      preconditionFailure("\(error)")
    }
  }

  /// Arbitrary frames in LiveKit's format, and a genuine frame with arbitrary changes: only the genuine one opens. And
  /// arbitrary frames round-trip.
  ///
  /// Input: one byte that picks the codec, then the frame, or what is XORed into the genuine one.
  static let liveKitFrame = FuzzTarget(name: "livekit-frame") { bytes in
    guard let pick = bytes.first else { return }
    let codec = LiveKitFrameCodec.allCases[Int(pick) % LiveKitFrameCodec.allCases.count]
    let payload = Array(bytes.dropFirst())
    do {
      let now = Instant(nanoseconds: 1)
      var configuration = LiveKitKeyRing.Configuration()
      configuration.ratchetWindow = Int(pick >> 4 & 3)
      var ada = LiveKitKeyRing(
        localIdentity: "ada", ledger: CallKeyLedger(), random: RandomSource(seed: 1),
        configuration: configuration)
      var bob = LiveKitKeyRing(
        localIdentity: "bob", ledger: CallKeyLedger(), random: RandomSource(seed: 2),
        configuration: configuration)
      let secret = [UInt8](repeating: 1, count: 16)
      try ada.setKey(try LiveKitKey(secret.span, derivation: .hkdf), index: 0)
      try bob.setKey(try LiveKitKey(secret.span, derivation: .hkdf), index: 0)
      let track = try ada.makeSender(codec: codec, ssrc: 0x0100)
      let receiver = try bob.makeReceiver(identity: "ada", codec: codec)

      var arbitrary = payload
      let count = arbitrary.count
      var span = arbitrary.mutableSpan
      if case .opened = bob.open(receiver, in: &span, frame: 0..<count, at: now) {
        precondition(payload.isEmpty, "a made-up frame opens")
      }

      let tail = [UInt8](repeating: 0, count: LiveKitKeyRing.tailroom(forFrameOf: count, codec: codec))
      var buffer = payload + tail
      var bufferSpan = buffer.mutableSpan
      let sealed = try ada.seal(track, in: &bufferSpan, frame: 0..<count, timestamp: 0)
      let genuine = Array(buffer[sealed])
      // One changed byte: where the input says, and how.
      if let last = payload.last, let first = payload.first, first != 0 {
        var changed = genuine
        changed[Int(last) % changed.count] ^= first
        var changedSpan = changed.mutableSpan
        if case .opened(let range) = bob.open(receiver, in: &changedSpan, frame: 0..<genuine.count, at: now) {
          // A byte of an escape that changes nothing, or nothing but where escapes are.
          precondition(Array(changed[range]) == payload, "a changed frame opens as another one")
          return
        }
      }
      var copy = genuine
      let size = copy.count
      var copySpan = copy.mutableSpan
      guard case .opened(let range) = bob.open(receiver, in: &copySpan, frame: 0..<size, at: now),
        Array(copy[range]) == payload
      else { preconditionFailure("the genuine frame does not open") }
    } catch {
      preconditionFailure("\(error)")
    }
  }
}
