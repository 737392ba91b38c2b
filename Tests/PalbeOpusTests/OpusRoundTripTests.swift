import CPalbeMallocCounter
import PalbeOpus
import PalbeUnits
import Testing

@Suite struct OpusRoundTripTests {
  @Test("RFC 6716: the waveform comes back, late by the look-ahead, 20 ms a packet", arguments: [1, 2])
  func roundTrip(channels: Int) throws {
    var encoder = try OpusEncoder(
      OpusConfiguration(channels: channels, bitrate: .kilobitsPerSecond(96), application: .audio))
    var decoder = try OpusDecoder(channels: channels)
    var sent = [Int16]()
    var heard = [Int16]()
    for (index, packet) in try OpusSignals.packets(&encoder, frames: 50).enumerated() {
      #expect(OpusDecoder.sampleCount(of: packet) == Opus.samplesPerFrame)
      sent += OpusSignals.frame(index, channels: channels)
      let samples = try OpusSignals.decode(&decoder, packet)
      #expect(samples.count == 960 * channels)
      heard += samples
    }
    // The first frames are a run-up.
    let lag = encoder.lookahead * channels
    let pairs = zip(sent[4_800...], heard[(4_800 + lag)...])
    let noise = pairs.reduce(0.0) { sum, pair in
      let distance = Double(pair.0) - Double(pair.1)
      return sum + distance * distance
    }
    let signal = pairs.reduce(0.0) { $0 + Double($1.0) * Double($1.0) }
    #expect(signal > 20 * noise)
  }

  @Test("speech comes back at its level") func speechLevel() throws {
    var encoder = try OpusEncoder(OpusConfiguration())
    var decoder = try OpusDecoder()
    var (sent, heard) = (0.0, 0.0)
    for (index, packet) in try OpusSignals.packets(&encoder, frames: 50).enumerated() where index > 5 {
      sent += OpusSignals.energy(OpusSignals.frame(index))
      heard += OpusSignals.energy(try OpusSignals.decode(&decoder, packet))
    }
    #expect((0.7...1.4).contains(heard / sent))
  }

  @Test("RFC 7587 §4.2: every frame length encodes", arguments: [120, 240, 480, 960, 1_920, 2_880])
  func frameLengths(samples: Int) throws {
    var encoder = try OpusEncoder(OpusConfiguration())
    var decoder = try OpusDecoder()
    let packet = try OpusSignals.packet(&encoder, [Int16](repeating: 100, count: samples))
    #expect(OpusDecoder.sampleCount(of: packet) == samples)
    #expect(try OpusSignals.decode(&decoder, packet).count == samples)
  }

  @Test("the bitrate is kept and can be changed") func bitrate() throws {
    var encoder = try OpusEncoder(OpusConfiguration(bitrate: .kilobitsPerSecond(64)))
    let high = try OpusSignals.packets(&encoder, frames: 50).reduce(0) { $0 + $1.count }
    try encoder.setBitrate(.kilobitsPerSecond(16))
    let low = try OpusSignals.packets(&encoder, frames: 50).reduce(0) { $0 + $1.count }
    #expect((4_000...9_600).contains(high))
    #expect((1_000...2_600).contains(low))
  }

  @Test("with DTX silence is packets that need not be sent") func dtx() throws {
    var encoder = try OpusEncoder(OpusConfiguration(usesDTX: true))
    let silence = [Int16](repeating: 0, count: 960)
    var short = 0
    for _ in 0..<100 where try OpusSignals.packet(&encoder, silence).count <= 2 { short += 1 }
    #expect(short > 70)
  }

  @Test("encoding, decoding and concealing allocate nothing") func allocations() throws {
    var encoder = try OpusEncoder(OpusConfiguration())
    var decoder = try OpusDecoder()
    let samples = OpusSignals.frame(3)
    var packet = [UInt8]()
    packet.reserveCapacity(Opus.maximumFrameByteCount)
    var heard = [Int16]()
    heard.reserveCapacity(Opus.maximumSamplesPerPacket)
    var counts = [UInt64]()
    counts.reserveCapacity(20)
    for _ in 0..<20 {
      packet.removeAll(keepingCapacity: true)
      heard.removeAll(keepingCapacity: true)
      let before = palbe_malloc_count()
      try packet.append(addingCapacity: Opus.maximumFrameByteCount) { output throws(OpusError) in
        try encoder.encode(samples.span, into: &output)
      }
      try heard.append(addingCapacity: Opus.maximumSamplesPerPacket) { output throws(OpusError) in
        try decoder.decode(packet.span, into: &output)
        try decoder.conceal(samples: 960, into: &output)
      }
      counts.append(palbe_malloc_count() - before)
    }
    #expect(counts.last == 0)
  }
}
