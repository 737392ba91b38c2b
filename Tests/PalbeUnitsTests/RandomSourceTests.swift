import PalbeUnits
import Testing

struct RandomSourceTests {
  @Test("a seed replays, another seed does not")
  func replay() {
    var first = RandomSource(seed: 42)
    var again = RandomSource(seed: 42)
    var other = RandomSource(seed: 43)
    let values = (0..<100).map { _ in first.next() }
    #expect(values == (0..<100).map { _ in again.next() })
    #expect(values != (0..<100).map { _ in other.next() })
    #expect(Set(values).count == 100)
  }

  @Test("SplitMix64's published sequence for seed 1234567")
  func reference() {
    var random = RandomSource(seed: 1_234_567)
    #expect(random.next() == 6_457_827_717_110_365_317)
    #expect(random.next() == 3_203_168_211_198_807_973)
    #expect(random.next() == 9_817_491_932_198_370_423)
  }

  @Test("bytes are the words, low byte first; a drawn source is asked for each word")
  func bytes() {
    var drawn = RandomSource { 0x0807_0605_0403_0201 }
    #expect(drawn.bytes(10) == [1, 2, 3, 4, 5, 6, 7, 8, 1, 2])
    #expect(drawn.bytes(0) == [])
    var seeded = RandomSource(seed: 1)
    #expect(seeded.bytes(33).count == 33)
  }

  @Test("it drives the standard library's random functions")
  func generator() {
    var random = RandomSource(seed: 9)
    for _ in 0..<100 { #expect((3..<9).contains(Int.random(in: 3..<9, using: &random))) }
  }
}
