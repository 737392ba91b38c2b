import Foundation
import PalbeCall
import PalbeCallLab
import PalbeOpus
import PalbeUnits
import Testing

@Suite struct SignalsSoundTests {
  private static func samples(_ source: some AudioSource, frames: Int) -> [Int16] {
    var source = source
    var frame = [Int16](repeating: 0, count: 960)
    return (0..<frames).flatMap { _ -> [Int16] in
      source.next(into: &frame)
      return frame
    }
  }

  @Test("a tone has its level and is clean to the rounding of its samples") func cleanTone() throws {
    var meter = ToneMeter(frequency: 440)
    meter.add(Self.samples(ToneSignal(frequency: 440, level: -12), frames: 25))
    let result = try #require(meter.result)
    #expect(result.toneWindows == 5 && result.silentWindows == 0)
    #expect(abs(result.level + 12) < 0.1)
    #expect(result.meanSNR > 75)
  }

  @Test("a known amount of noise is measured as that", arguments: [10.0, 30])
  func knownNoise(decibels: Double) throws {
    let tone = Self.samples(ToneSignal(frequency: 1_000, level: -12), frames: 50)
    var random = RandomSource(seed: 4)
    // A uniform distribution of width w has the variance w² / 12; the tone's is a² / 2.
    let amplitude = 32_767 * pow(10, -12.0 / 20)
    let width = (6 * amplitude * amplitude / pow(10, decibels / 10)).squareRoot()
    let noisy = tone.map { Int16(Double($0) + Double.random(in: -width / 2...width / 2, using: &random)) }
    var meter = ToneMeter(frequency: 1_000)
    // In odd pieces.
    for start in stride(from: 0, to: noisy.count, by: 777) {
      meter.add(Array(noisy[start..<min(noisy.count, start + 777)]))
    }
    let result = try #require(meter.result)
    #expect(abs(result.meanSNR - decibels) < 0.5)
    #expect(abs(result.medianSNR - decibels) < 0.5)
  }

  @Test("silence before the tone is no result, silence after it is counted; a jump costs one window")
  func silenceAndJumps() throws {
    var meter = ToneMeter(frequency: 440)
    meter.add([Int16](repeating: 0, count: 9_600))
    #expect(meter.result == nil)
    let tone = Self.samples(ToneSignal(frequency: 440), frames: 50)
    meter.add(Array(tone[..<24_000] + tone[24_060...]))
    meter.add([Int16](repeating: 0, count: 9_660))
    let result = try #require(meter.result)
    #expect(result.toneWindows == 10 && result.silentWindows == 2)
    #expect(result.medianSNR > 60)
  }

  @Test("another tone is noise") func otherTone() throws {
    var meter = ToneMeter(frequency: 440)
    meter.add(Self.samples(ToneSignal(frequency: 1_000), frames: 25))
    #expect(try #require(meter.result).meanSNR < -10)
    #expect(try #require(meter.result).toneWindows == 0)
  }

  @Test("issue 2: a tone through Opus at 48 kbit/s with FEC has at least 30 dB", arguments: [440.0, 1_000])
  func throughOpus(frequency: Double) throws {
    var encoder = try OpusEncoder(OpusConfiguration())
    var decoder = try OpusDecoder()
    var tone = ToneSignal(frequency: frequency)
    var meter = ToneMeter(frequency: frequency)
    var frame = [Int16](repeating: 0, count: 960)
    for index in 0..<100 {
      tone.next(into: &frame)
      let packet = try [UInt8](capacity: Opus.maximumFrameByteCount) { output throws(OpusError) in
        try encoder.encode(frame.span, into: &output)
      }
      let heard = try [Int16](capacity: Opus.maximumSamplesPerPacket) { output throws(OpusError) in
        try decoder.decode(packet.span, into: &output)
      }
      if index >= 10 { meter.add(heard) }
    }
    #expect(try #require(meter.result).meanSNR > 30)
  }

  @Test("the voice has harmonics of 120 Hz, four syllables a second and pauses") func voice() {
    let voice = Self.samples(VoiceSignal(level: -9), frames: 200)
    #expect(abs(Loudness.peak(voice) + 9) < 1)
    // Two phrases of six syllables and half a second of silence in four seconds.
    let syllables = (0..<16).map { Loudness.rms(Array(voice[$0 * 12_000..<($0 + 1) * 12_000])) }
    for (index, level) in syllables.enumerated() { #expect((level > -30) == (index % 8 < 6)) }
    for index in 0..<16 {
      #expect(Loudness.peak(Array(voice[index * 12_000 + 9_700..<(index + 1) * 12_000])) < -60)
    }
    // The same wave 400 samples later, but for its loudness.
    let middle = Array(voice[4_000..<5_200])
    let later = Array(voice[4_400..<5_600])
    let (product, first, second) = zip(middle, later).reduce((0.0, 0.0, 0.0)) { sum, pair in
      let (a, b) = (Double(pair.0), Double(pair.1))
      return (sum.0 + a * b, sum.1 + a * a, sum.2 + b * b)
    }
    #expect(product / (first * second).squareRoot() > 0.99)
  }

  @Test("levels of silence and of full scale") func loudness() {
    #expect(Loudness.rms([]) == -.infinity)
    #expect(Loudness.rms([0, 0]) == -.infinity && Loudness.peak([0]) == -.infinity)
    #expect(Loudness.rms([32_767, -32_767]) == 0)
    #expect(Loudness.peak([.min]) > 0)
  }

  @Test("the lag of a heard voice is found to the sample", arguments: [0, 1, 312, 2_407, -850])
  func alignment(lag: Int) throws {
    let voice = Self.samples(VoiceSignal(), frames: 40)
    let heard =
      lag >= 0
      ? [Int16](repeating: 0, count: lag) + voice.map { $0 / 2 } : Array(voice.dropFirst(-lag))
    let match = try #require(Alignment.find(heard, in: voice, maximumLag: 3_000))
    #expect(match.lag == lag)
    #expect(match.correlation > 0.99)
  }

  @Test("silence has no lag") func alignmentOfSilence() {
    let silence = [Int16](repeating: 0, count: 4_800)
    #expect(Alignment.find(silence, in: silence, maximumLag: 100) == nil)
    #expect(Alignment.find([], in: silence, maximumLag: 100) == nil)
  }
}
