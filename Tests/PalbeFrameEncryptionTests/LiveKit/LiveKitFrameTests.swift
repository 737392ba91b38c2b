import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeFrameEncryption

@Suite("LiveKit's frame format: frames")
struct LiveKitFrameTests {
  @Test(
    "livekit-protocol.md §3: round trips of every codec, with bodies of 0 to 80 bytes",
    arguments: LiveKitFrameCodec.allCases)
  func roundTrips(_ codec: LiveKitFrameCodec) throws {
    let (ada, bob, track, source) = try livekitPair(codec)
    var timestamp: UInt32 = 0
    for count in 0...80 {
      for frame in livekitFrames(codec, (0..<count).map { UInt8($0 & 3) }) {
        timestamp += 960
        let sealed = try ada.seal(track, frame, timestamp: timestamp)
        let clear = codec.clearByteCount(of: frame.span)
        #expect(Array(sealed.prefix(clear)) == Array(frame.prefix(clear)))
        #expect(codec.escapes ? sealed.count >= frame.count + 30 : sealed.count == frame.count + 30)
        #expect(bob.open(source, sealed) == .opened(frame))
      }
    }
    #expect(bob.ring.statistics.received.failed == 0)
  }

  @Test(
    "livekit-protocol.md §3: frames shorter than their clear part round-trip",
    arguments: LiveKitFrameCodec.allCases)
  func short(_ codec: LiveKitFrameCodec) throws {
    let (ada, bob, track, source) = try livekitPair(codec)
    var timestamp: UInt32 = 0
    for frame in livekitFrames(codec, [1, 2, 3]) {
      for count in 1...frame.count {
        timestamp += 960
        let cut = Array(frame.prefix(count))
        #expect(bob.open(source, try ada.seal(track, cut, timestamp: timestamp)) == .opened(cut))
      }
    }
  }

  @Test("livekit-protocol.md §3: clear bytes of each codec")
  func clearBytes() {
    func clear(_ codec: LiveKitFrameCodec, _ frame: String) -> Int {
      codec.clearByteCount(of: hex(frame).span)
    }
    #expect(clear(.audio, "78010203") == 1)
    #expect(clear(.vp8, "10020000000000000000000000") == 10)
    #expect(clear(.vp8, "31020000000000000000000000") == 3)
    #expect(clear(.vp9, "8202") == 0)
    // The slice lies behind parameter sets, start codes have three or four bytes, and one that is cut off counts up to its end.
    #expect(clear(.h264, "0000000167420000016588aabb") == 11)
    #expect(clear(.h264, "0000014188aabb") == 5)
    #expect(clear(.h264, "00000141") == 4)
    #expect(clear(.h264, "000001") == 0)
    #expect(clear(.h264, "00000167420000000168") == 0)
    #expect(clear(.h264, "4188aabb") == 0)
    #expect(clear(.h265, "00000001400100000126014588") == 11)
    #expect(clear(.h265, "0000010201d0") == 5)
    #expect(clear(.h265, "0000012a01d0") == 5)
    #expect(clear(.h265, "0000012c01d0") == 0)
    for codec in LiveKitFrameCodec.allCases { #expect(clear(codec, "") == 0) }
  }

  @Test("livekit-protocol.md §3: a sealed H.264 or H.265 frame shows no start code behind its clear bytes")
  func noStartCode() throws {
    for codec in [LiveKitFrameCodec.h264, .h265] {
      let (ada, bob, track, source) = try livekitPair(codec)
      var escaped = 0
      // Zeros in IV and key index have to be escaped in nearly every frame here.
      for timestamp in UInt32(0)..<500 {
        let frame = livekitFrames(codec, [UInt8](repeating: 0, count: 300))[1]
        let sealed = try ada.seal(track, frame, timestamp: timestamp)
        if sealed.count > frame.count + 30 { escaped += 1 }
        let tail = Array(sealed.dropFirst(codec.clearByteCount(of: frame.span)))
        for index in tail.indices.dropLast(2) {
          #expect(tail[index] != 0 || tail[index + 1] != 0 || tail[index + 2] > 2)
        }
        #expect(bob.open(source, sealed) == .opened(frame))
      }
      #expect(escaped > 400)
    }
  }

  @Test("ITU-T H.264 §7.4.1.1: escaping and its reverse")
  func escaping() {
    for (plain, escaped) in [
      ("", ""), ("00", "00"), ("0000", "0000"), ("000001", "00000301"), ("000004", "000004"),
      ("0000000000", "00000300000300"), ("000003", "00000303"), ("01000002", "0100000302"),
      ("000000000003", "0000030000030003"),
    ] {
      var buffer = [UInt8](repeating: 9, count: 20)
      var span = buffer.mutableSpan
      let end = NALUnits.escape(hex(plain).span, into: &span, at: 1)
      #expect(Hex.encode(Array(buffer[1..<end])) == escaped)
      #expect(end - 1 - plain.count / 2 <= NALUnits.maximumEscapes(plain.count / 2))
      var again = buffer.mutableSpan
      let back = NALUnits.unescape(&again, 1..<end)
      #expect(Hex.encode(Array(buffer[1..<back])) == plain)
    }
  }

  @Test("livekit-protocol.md §3: an empty frame (DTX) passes both ways as it is, and counts as none")
  func empty() throws {
    let (ada, bob, track, source) = try livekitPair(.audio)
    #expect(try ada.seal(track, []) == [])
    #expect(bob.open(source, []) == .opened([]))
    #expect(ada.ring.statistics.sealedFrames == 0)
    #expect(bob.ring.statistics.received == FrameCounts())
  }

  @Test(
    "livekit-protocol.md §3, server-injected frames: plaintext never passes, whatever it ends with",
    arguments: LiveKitFrameCodec.allCases)
  func plaintext(_ codec: LiveKitFrameCodec) throws {
    let (_, bob, _, source) = try livekitPair(codec)
    let silence = [UInt8]([0xf8, 0xff, 0xfe]) + [UInt8](repeating: 0, count: 77)
    for frame in livekitFrames(codec, [UInt8](repeating: 5, count: 100)) + [silence, [0xf8, 0xff, 0xfe]] {
      for trailer in [[], Array("sif-trailer".utf8), [UInt8](repeating: 7, count: 12) + [0x0c, 0]] {
        let result = bob.open(source, frame + trailer)
        guard case .failed = result else {
          Issue.record("\(result)")
          continue
        }
      }
    }
    #expect(bob.ring.statistics.received.opened == 0)
  }

  @Test("No prefix of a sealed frame opens, and none traps", arguments: LiveKitFrameCodec.allCases)
  func truncation(_ codec: LiveKitFrameCodec) throws {
    let (ada, bob, track, source) = try livekitPair(codec) { $0.ratchetWindow = 2 }
    for (number, frame) in livekitFrames(codec, [UInt8](repeating: 7, count: 40)).enumerated() {
      let sealed = try ada.seal(track, frame, timestamp: UInt32(number))
      for count in 1..<sealed.count {
        guard case .failed = bob.open(source, Array(sealed.prefix(count))) else {
          Issue.record("\(count) of \(sealed.count) bytes open")
          continue
        }
      }
      #expect(bob.open(source, sealed) == .opened(frame))
    }
  }

  @Test("A flipped bit anywhere makes a frame that does not open", arguments: LiveKitFrameCodec.allCases)
  func tampering(_ codec: LiveKitFrameCodec) throws {
    let (ada, bob, track, source) = try livekitPair(codec) { $0.ratchetWindow = 1 }
    for (number, frame) in livekitFrames(codec, [UInt8](repeating: 7, count: 24)).enumerated() {
      let sealed = try ada.seal(track, frame, timestamp: UInt32(number))
      for index in sealed.indices {
        for bit in 0..<8 {
          var changed = sealed
          changed[index] ^= 1 << UInt8(bit)
          // A start code may grow or shrink, and the same frame come out: then it is the same frame.
          let result = bob.open(source, changed)
          if case .opened(let bytes) = result, bytes == changed.dropLast(sealed.count - frame.count) {
            continue
          }
          guard case .failed = result else {
            Issue.record("bit \(bit) of byte \(index): \(result)")
            continue
          }
        }
      }
      #expect(bob.open(source, sealed) == .opened(frame))
    }
  }

  @Test("In place: neighbours stay untouched; without room nothing is sealed and no IV is used up")
  func inPlace() throws {
    let (ada, bob, track, source) = try livekitPair(.vp8)
    let frame = vp8(50)
    var buffer = [UInt8](repeating: 0xee, count: 20) + frame + [UInt8](repeating: 0xee, count: 40)
    var short = Array(buffer.dropLast(11))
    var shortSpan = short.mutableSpan
    #expect(throws: SealError.noRoom(needed: 30, have: 29)) {
      _ = try ada.ring.seal(track, in: &shortSpan, frame: 20..<20 + frame.count, timestamp: 1)
    }
    var span = buffer.mutableSpan
    let before = ada.ring.state.senders[0]!.ivs
    let range = try ada.ring.seal(track, in: &span, frame: 20..<20 + frame.count, timestamp: 1)
    var copy = before
    #expect(copy.next(timestamp: 1)!.bytes == Array(buffer[range].suffix(14).prefix(12)))
    #expect(range == 20..<20 + frame.count + 30)
    #expect(buffer[..<20].allSatisfy { $0 == 0xee } && buffer[range.upperBound...].allSatisfy { $0 == 0xee })
    var again = buffer.mutableSpan
    #expect(bob.ring.open(source, in: &again, frame: range, at: start) == .opened(20..<20 + frame.count))
    #expect(Array(buffer[20..<20 + frame.count]) == frame)
  }

  @Test("Ranges outside the buffer, and handles of another ring, are refused")
  func misuse() throws {
    let (ada, bob, track, source) = try livekitPair(.vp8)
    var buffer = [UInt8](repeating: 0, count: 50)
    var span = buffer.mutableSpan
    #expect(bob.ring.open(source, in: &span, frame: 40..<51, at: start) == .failed(.malformed))
    #expect(ada.ring.open(source, in: &span, frame: 0..<50, at: start) == .failed(.unknownReceiver))
    #expect(try bob.receiver("ada") == source)
    #expect(try bob.receiver("ada", .audio) != source)
    bob.ring.participantLeft(identity: "ada")
    #expect(bob.ring.open(source, in: &span, frame: 0..<50, at: start) == .failed(.unknownReceiver))
    ada.ring.removeSender(track)
    #expect(throws: SealError.unknownSender) { try ada.seal(track, vp8()) }
  }
}
