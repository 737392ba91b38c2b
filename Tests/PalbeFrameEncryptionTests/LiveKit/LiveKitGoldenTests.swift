import PalbeCrypto
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeFrameEncryption

@Suite("LiveKit's frame format: golden vectors")
struct LiveKitGoldenTests {
  static let passphrase = Array("correct horse battery staple".utf8)

  @Test(
    "livekit-protocol.md §3, keys: PBKDF2-HMAC-SHA256 with 100,000 rounds and HKDF-SHA256, 128 and 256 bits, two steps of ratchet"
  )
  func derivations() throws {
    let golden = try LiveKitGolden.load()
    #expect(golden.derivations.count == 16)
    for item in golden.derivations {
      let derivation = LiveKitKeyDerivation(
        item.kind == "hkdf" ? .hkdf : .pbkdf2(iterations: 100_000), keyByteCount: item.key_bytes)
      var key = try LiveKitKey(hex(item.secret).span, derivation: derivation)
      for (step, expected) in item.keys.enumerated() {
        if step > 0 { key = key.ratcheted() }
        #expect(Hex.encode([UInt8](key.frameKey.span)) == expected, "\(item.kind) step \(step)")
      }
    }
  }

  @Test("livekit-protocol.md §3, keys: what clients do unless told otherwise")
  func defaults() throws {
    #expect(LiveKitKeyDerivation.pbkdf2.function == .pbkdf2(iterations: 100_000))
    #expect(LiveKitKeyDerivation.pbkdf2.salt == Array("LKFrameEncryptionKey".utf8))
    #expect(LiveKitKeyDerivation.pbkdf2.keyByteCount == 16)
    let configuration = LiveKitKeyRing.Configuration()
    #expect(configuration.slots == 16 && configuration.ratchetWindow == 16)
    #expect(configuration.failureTolerance == nil)
    #expect(throws: FrameKeyError.wrongLength(expected: 1, got: 0)) { _ = try LiveKitKey([UInt8]().span) }
  }

  @Test(
    "livekit-protocol.md §3, media frame: every codec, sealed and opened as a second implementation computes it"
  )
  func frames() throws {
    let golden = try LiveKitGolden.load()
    #expect(golden.frames.count == 15)
    for item in golden.frames {
      let codec = try #require(livekitCodec(item.codec))
      let ada = LiveKitPeer("ada") { $0.slots = 255 }
      let bob = LiveKitPeer("bob") { $0.slots = 255 }
      for peer in [ada, bob] {
        try peer.ring.setKey(
          try LiveKitKey(Self.passphrase.span, derivation: .init(.pbkdf2(iterations: 100_000))),
          index: item.index)
      }
      let track = try ada.sender(codec, ssrc: item.ssrc)
      ada.ring.sendIndex = item.index
      ada.ring.state.senders[0]!.ivs = LiveKitIVSequence(source: item.ssrc, firstCount: item.count)
      let frame = hex(item.frame)
      #expect(codec.clearByteCount(of: frame.span) == item.clear)
      let sealed = try ada.seal(track, frame, timestamp: item.timestamp)
      #expect(Hex.encode(sealed) == item.sealed, "\(item.codec)")
      #expect(bob.open(try bob.receiver("ada", codec), hex(item.sealed)) == .opened(frame))
    }
  }

  @Test("livekit-protocol.md §3, data packets: IV, ciphertext and tag without associated data")
  func data() throws {
    let golden = try LiveKitGolden.load()
    #expect(golden.data.count == 3)
    for item in golden.data {
      let ada = LiveKitPeer("ada")
      let bob = LiveKitPeer("bob")
      for peer in [ada, bob] {
        try peer.ring.setKey(try LiveKitKey(Self.passphrase.span), index: item.index)
      }
      ada.ring.sendIndex = item.index
      ada.ring.state.dataIVs = LiveKitIVSequence(source: item.source, firstCount: item.count)
      var header: (iv: LiveKitIV, keyIndex: Int)?
      var sealed = try [UInt8](capacity: 200) { output throws(SealError) in
        header = try ada.ring.sealData(
          hex(item.payload).span, unixMilliseconds: 7 << 32 | UInt64(item.milliseconds), into: &output)
      }
      #expect(Hex.encode(sealed) == item.sealed)
      #expect(Hex.encode(header?.iv.bytes ?? []) == item.iv)
      #expect(header?.keyIndex == item.index)
      let (count, iv) = (sealed.count, hex(item.iv))
      var span = sealed.mutableSpan
      let result = bob.ring.openData(
        from: "ada", in: &span, sealed: 0..<count, iv: iv.span, keyIndex: item.index, at: start)
      #expect(result == .opened(0..<count - 16))
      #expect(Hex.encode(Array(sealed.dropLast(16))) == item.payload)
    }
  }
}
