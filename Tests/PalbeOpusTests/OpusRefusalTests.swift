import PalbeOpus
import PalbeUnits
import PalbeWire
import Testing

@Suite struct OpusRefusalTests {
  @Test(
    "values out of range are refused",
    arguments: [
      OpusConfiguration(channels: 0), OpusConfiguration(channels: 3),
      OpusConfiguration(bitrate: .kilobitsPerSecond(5)), OpusConfiguration(bitrate: .kilobitsPerSecond(511)),
      OpusConfiguration(expectedLossPercent: -1), OpusConfiguration(expectedLossPercent: 101),
      OpusConfiguration(complexity: 11),
    ])
  func configuration(configuration: OpusConfiguration) {
    #expect(throws: OpusError.invalidConfiguration) { _ = try OpusEncoder(configuration) }
  }

  @Test("a decoder has one or two channels") func decoderChannels() {
    #expect(throws: OpusError.invalidConfiguration) { _ = try OpusDecoder(channels: 3) }
  }

  @Test("a frame of another length is refused", arguments: [0, 1, 119, 959, 961, 5_760])
  func frameLength(samples: Int) throws {
    var encoder = try OpusEncoder(OpusConfiguration())
    let error = #expect(throws: OpusError.self) {
      _ = try OpusSignals.packet(&encoder, [Int16](repeating: 0, count: samples))
    }
    #expect(error == .invalidFrameLength(samples: samples))
  }

  @Test("a loss that is no multiple of 2.5 ms, and a full buffer, are refused") func lossLength() throws {
    var decoder = try OpusDecoder()
    for count in [0, -120, 100, 5_880] {
      #expect(throws: OpusError.invalidFrameLength(samples: count)) {
        _ = try OpusSignals.conceal(&decoder, samples: count, room: 8_000)
      }
    }
    #expect(throws: OpusError.outputTooSmall(needed: 960, have: 959)) {
      _ = try OpusSignals.conceal(&decoder, samples: 960, room: 959)
    }
  }

  @Test("a buffer shorter than the packet's samples is refused") func shortOutput() throws {
    var decoder = try OpusDecoder()
    #expect(throws: OpusError.outputTooSmall(needed: 960, have: 500)) {
      _ = try OpusSignals.decode(&decoder, OpusGolden.first, room: 500)
    }
  }

  @Test("RFC 6716 §3.4: every prefix of a packet decodes to its samples or is refused") func truncation()
    throws
  {
    var decoder = try OpusDecoder()
    for packet in [OpusGolden.first, OpusGolden.second, OpusGolden.threeFrames] {
      for count in 0..<packet.count {
        let prefix = Array(packet[..<count])
        do {
          let samples = try OpusSignals.decode(&decoder, prefix)
          #expect(samples.count == OpusDecoder.sampleCount(of: prefix))
        } catch {
          #expect(error as? OpusError == .invalidPacket)
          #expect(count == 0 || OpusDecoder.sampleCount(of: prefix) == nil || packet[0] & 3 != 0)
        }
      }
    }
  }

  @Test(
    "RFC 6716 §3.4 [R1] to [R7]: packets that break the rules are refused",
    arguments: [
      [],  // [R1] at least one byte
      [0x49, 1],  // [R3] code 1 has an even number of bytes after the TOC
      [0x4a], [0x4a, 200, 1],  // [R4] code 2's first length is inside the packet
      [0x4b], [0x4b, 0],  // [R5] code 3 has at least one frame
      [0x4b, 7, 1, 1, 1, 1, 1, 1, 1],  // [R5] and at most 120 ms
      [0x4b, 0x43, 255],  // [R6] padding is inside the packet
    ] as [[UInt8]])
  func malformed(packet: [UInt8]) throws {
    var decoder = try OpusDecoder()
    let error = #expect(throws: OpusError.self) { _ = try OpusSignals.decode(&decoder, packet) }
    #expect(error == .invalidPacket)
    // The decoder goes on.
    #expect(try OpusSignals.decode(&decoder, OpusGolden.first).count == 960)
  }

  @Test("golden: two speech packets decode, the second with the first's copy") func golden() throws {
    var decoder = try OpusDecoder()
    #expect(try OpusSignals.decode(&decoder, OpusGolden.first).count == 960)
    let second = try OpusSignals.decode(&decoder, OpusGolden.second)
    #expect(OpusSignals.energy(second) > 10_000)
    var late = try OpusDecoder()
    let copy = try OpusSignals.decodeFEC(&late, from: OpusGolden.second)
    #expect(OpusSignals.energy(copy) > 1_000)
  }
}

/// Packets made by libopus 1.3.1: SILK wideband, 20 ms, 24 kbit/s, with in-band FEC.
enum OpusGolden {
  static let first = Hex.decode(
    "48ef32cf3c855443ab27f5287105d83fae694e777ca2cbaabb5e9902168692d449624bd9b221b28006b9fb8842"
      + "7423798710241ab0"
  )!
  static let second = Hex.decode(
    "48ee8435488959ffb648bf006392e15aad361f36fcb2a0c66adac2c0e4e94163be2dc835003b8f617a8eaec0f6"
      + "768d0f8e005bba08"
      + "00ef517e25")!
  /// The second packet's frame three times under one TOC, as code 3 with constant length.
  static let threeFrames = [second[0] | 3, 3] + second[1...] + second[1...] + second[1...]
}
