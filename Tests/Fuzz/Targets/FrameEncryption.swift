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
}
