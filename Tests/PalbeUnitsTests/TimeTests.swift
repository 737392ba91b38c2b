import PalbeUnits
import Testing

struct TimeTests {
  @Test("instants saturate instead of overflowing")
  func saturation() {
    #expect(Instant.distantFuture + .seconds(1) == .distantFuture)
    #expect(Instant(nanoseconds: .min) - .seconds(1) == Instant(nanoseconds: .min))
    #expect(Instant.distantFuture - Instant(nanoseconds: -5) == TimeDelta(nanoseconds: .max))
    #expect(Instant(nanoseconds: -1) - Instant.distantFuture == TimeDelta(nanoseconds: .min))
    #expect(Instant(nanoseconds: .min) - Instant.distantFuture == TimeDelta(nanoseconds: .min))
  }

  @Test("deltas convert between units")
  func conversions() {
    #expect(TimeDelta.milliseconds(20) == .microseconds(20_000))
    #expect(TimeDelta.seconds(1.5) == .milliseconds(1_500))
    #expect(TimeDelta.seconds(-1.5).wholeMilliseconds == -1_500)
    #expect(TimeDelta.microseconds(1_999).wholeMilliseconds == 1)
    #expect(TimeDelta.seconds(3) / 2 == .milliseconds(1_500))
    #expect(-TimeDelta.seconds(1) < .zero)
    #expect(TimeDelta.milliseconds(5).inSeconds == 0.005)
    var instant = Instant.zero
    instant += .milliseconds(3)
    #expect((instant - .zero).inMilliseconds == 3)
  }

  @Test("RFC 3550 §4: NTP time counts from 1900 in 32.32 fixed point")
  func ntp() {
    let epoch = NTPTime(unixNanoseconds: 0)
    #expect(epoch.rawValue == UInt64(2_208_988_800) << 32)
    let half = NTPTime(unixNanoseconds: 1_500_000_000)
    #expect(half.rawValue == UInt64(2_208_988_801) << 32 | 0x8000_0000)
    #expect(half.middle == UInt32(2_208_988_801 & 0xffff as UInt64) << 16 | 0x8000)
    #expect(epoch < half)
  }

  @Test("a size over a time is a rate; no time is no rate")
  func rates() {
    #expect(DataSize(bytes: 125) / .milliseconds(1) == .megabitsPerSecond(1))
    #expect(DataSize(bytes: 125) / .zero == .zero)
    #expect(DataRate.kilobitsPerSecond(1_000) == .megabitsPerSecond(1))
    #expect(DataSize(bytes: 1) + DataSize(bytes: 2) == DataSize(bytes: 3))
  }
}
