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

  @Test("Bug: a clock after 2262 ended the process; its reading saturates")
  func clockReading() {
    #expect(TimeDelta.reading(seconds: 3, nanoseconds: 5) == TimeDelta(nanoseconds: 3_000_000_005))
    for seconds in [9_223_372_037, 253_402_300_800, Int.max] {
      #expect(TimeDelta.reading(seconds: seconds, nanoseconds: 0) == TimeDelta(nanoseconds: .max))
      #expect(TimeDelta.reading(seconds: -seconds, nanoseconds: 999_999_999) == TimeDelta(nanoseconds: .min))
    }
    #expect(
      TimeDelta.reading(seconds: 9_223_372_036, nanoseconds: 999_999_999) == TimeDelta(nanoseconds: .max))
  }

  @Test("The difference of wall times saturates")
  func wallDifference() {
    let (early, late) = (WallTime(microseconds: 1_000), WallTime(microseconds: 3_000))
    #expect(late - early == .milliseconds(2) && early - late == .milliseconds(-2))
    for (low, high) in [(Int64.min, Int64.max), (-1, .max), (0, 1 << 61)] {
      let span = WallTime(microseconds: high) - WallTime(microseconds: low)
      #expect(span == TimeDelta(nanoseconds: .max))
      #expect(WallTime(microseconds: low) - WallTime(microseconds: high) == TimeDelta(nanoseconds: .min))
    }
  }

  @Test("RFC 3550 §4: NTP time counts from 1900 in 32.32 fixed point")
  func ntp() {
    let epoch = NTPTime(unixNanoseconds: 0)
    #expect(epoch.rawValue == UInt64(2_208_988_800) << 32)
    let half = NTPTime(unixNanoseconds: 1_500_000_000)
    #expect(half.rawValue == UInt64(2_208_988_801) << 32 | 0x8000_0000)
    #expect(half.middle == UInt32(2_208_988_801 & 0xffff as UInt64) << 16 | 0x8000)
    #expect(epoch < half)
    // A clock at either end: no trap.
    #expect(NTPTime(unixNanoseconds: -1) == epoch && NTPTime(unixNanoseconds: .min) == epoch)
    #expect(
      NTPTime(unixNanoseconds: .max).rawValue >> 32 == (9_223_372_036 + 2_208_988_800) & 0xffff_ffff as UInt64
    )
  }

  @Test("a size over a time is a rate; no time is no rate")
  func rates() {
    #expect(DataSize(bytes: 125) / .milliseconds(1) == .megabitsPerSecond(1))
    #expect(DataSize(bytes: 125) / .zero == .zero)
    #expect(DataRate.kilobitsPerSecond(1_000) == .megabitsPerSecond(1))
    #expect(DataSize(bytes: 1) + DataSize(bytes: 2) == DataSize(bytes: 3))
  }
}
