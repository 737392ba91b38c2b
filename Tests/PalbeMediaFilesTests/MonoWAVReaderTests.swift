import Foundation
import PalbeMediaFiles
import Testing

@Suite struct MonoWAVReaderTests {
  @Test("one channel at 48 kHz passes unchanged, in a loop") func loops() throws {
    var reader = try MonoWAVReader(bytes: WAVFixture().bytes, name: "a.wav")
    var frame = [Int16](repeating: 0, count: 10)
    try reader.read(into: &frame)
    #expect(frame == [1, 2, 3, -1, 1, 2, 3, -1, 1, 2])
    try reader.read(into: &frame)
    #expect(frame == [3, -1, 1, 2, 3, -1, 1, 2, 3, -1])
  }

  @Test("two channels are mixed without overflow") func mixes() throws {
    var fixture = WAVFixture()
    fixture.channels = 2
    fixture.data = [10, 0, 20, 0, 0xff, 0x7f, 0xff, 0x7f, 0, 0x80, 0, 0x80]
    var reader = try MonoWAVReader(bytes: fixture.bytes, name: "a.wav")
    var frame = [Int16](repeating: 0, count: 3)
    try reader.read(into: &frame)
    #expect(frame == [15, 32_767, -32_768])
  }

  @Test("a tone keeps its pitch, level and place from every rate", arguments: Resampler.supportedRates)
  func resamples(rate: Int) throws {
    var resampler = try #require(Resampler(from: rate))
    let tone = (0..<rate).map { Int16(10_000 * sin(2 * .pi * 1_000 * Double($0) / Double(rate))) }
    var heard = [Int16]()
    for start in stride(from: 0, to: rate, by: 331) {
      resampler.resample(Array(tone[start..<min(rate, start + 331)]), into: &heard)
    }
    // Half a filter is still to come.
    #expect(abs(heard.count - (48_000 - 16 * 48_000 / rate)) <= 48_000 / rate || rate == 48_000)
    var (signal, noise) = (0.0, 0.0)
    for index in 1_000..<40_000 {
      let expected = 10_000 * sin(2 * .pi * Double(index) / 48)
      signal += expected * expected
      noise += (Double(heard[index]) - expected) * (Double(heard[index]) - expected)
    }
    #expect(10 * log10(signal / noise) > 60)
  }

  @Test("a loud square wave is limited, not wrapped") func limits() throws {
    var resampler = try #require(Resampler(from: 16_000))
    var heard = [Int16]()
    resampler.resample((0..<4_000).map { $0 / 20 % 2 == 0 ? .max : .min }, into: &heard)
    for index in heard.indices.dropFirst(300) where index % 120 > 20 && index % 120 < 40 {
      #expect(abs(Int(heard[index])) > 20_000)
      #expect((heard[index] > 0) == (index / 60 % 2 == 0))
    }
  }

  @Test("a rate that cannot be resampled is refused in one line") func otherRate() throws {
    var fixture = WAVFixture()
    fixture.rate = 96_000
    let bytes = fixture.bytes
    let error = #expect(throws: MediaFileError.self) { _ = try MonoWAVReader(bytes: bytes, name: "a.wav") }
    #expect(
      error?.description == "a.wav: the sample rate is 96000 Hz: only 8000, 11025, 12000, 16000, 22050, "
        + "24000, 32000, 44100, 48000 Hz can be read")
  }
}
