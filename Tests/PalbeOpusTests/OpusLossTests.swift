import PalbeOpus
import PalbeUnits
import Testing

@Suite struct OpusLossTests {
  @Test("RFC 6716 §4.4: a lost packet is concealed at its length and fades when nothing follows")
  func concealment() throws {
    var encoder = try OpusEncoder(OpusConfiguration())
    var decoder = try OpusDecoder()
    var loudness = 0.0
    for packet in try OpusSignals.packets(&encoder, frames: 20) {
      loudness = OpusSignals.energy(try OpusSignals.decode(&decoder, packet))
    }
    var levels = [Double]()
    for _ in 0..<50 {
      let samples = try OpusSignals.conceal(&decoder, samples: 960)
      #expect(samples.count == 960)
      levels.append(OpusSignals.energy(samples))
    }
    #expect(levels[0] > loudness / 20)
    #expect(levels[49] < loudness / 200)
  }

  @Test("RFC 7587 §3.3: the next packet's copy is nearer to what was lost than concealment")
  func inbandFEC() throws {
    var encoder = try OpusEncoder(OpusConfiguration(bitrate: .kilobitsPerSecond(32), expectedLossPercent: 20))
    let packets = try OpusSignals.packets(&encoder, frames: 60)
    var whole = try OpusDecoder()
    var repaired = try OpusDecoder()
    var concealed = try OpusDecoder()
    var (withFEC, without) = (0.0, 0.0)
    for index in packets.indices.dropLast() {
      let truth = try OpusSignals.decode(&whole, packets[index])
      guard index > 10, index.isMultiple(of: 5) else {
        _ = try OpusSignals.decode(&repaired, packets[index])
        _ = try OpusSignals.decode(&concealed, packets[index])
        continue
      }
      let next = packets[index + 1]
      let fromFEC = try OpusSignals.decodeFEC(&repaired, from: next)
      let fromNothing = try OpusSignals.conceal(&concealed, samples: 960)
      #expect(fromFEC.count == 960)
      withFEC += OpusSignals.difference(truth, fromFEC)
      without += OpusSignals.difference(truth, fromNothing)
    }
    #expect(withFEC < without / 2)
  }

  @Test("a stream without FEC conceals instead, at the same length") func missingFEC() throws {
    var encoder = try OpusEncoder(OpusConfiguration(application: .audio, usesInbandFEC: false))
    var decoder = try OpusDecoder()
    let packets = try OpusSignals.packets(&encoder, frames: 3)
    _ = try OpusSignals.decode(&decoder, packets[0])
    let samples = try OpusSignals.decodeFEC(&decoder, from: packets[2])
    #expect(samples.count == 960)
  }
}
