import CPalbeLinux
import PalbeUnits

/// The clock that every deadline is measured by: CLOCK_MONOTONIC, which never jumps.
public enum MonotonicClock {
  /// The time since an origin that is the same for all threads and processes of the host.
  @inlinable public static func now() -> Instant {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }
}

/// The time of day, for tokens, certificates and sender reports; it may jump.
public enum WallClock {
  /// Nanoseconds since 1970 (UTC); a clock that is set to before then or to after 2262 stands at that end.
  @inlinable public static func unixNanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return max(0, TimeDelta.reading(seconds: time.tv_sec, nanoseconds: time.tv_nsec).nanoseconds)
  }

  /// Whole seconds since 1970 (UTC).
  public static var unixSeconds: Int64 { unixNanoseconds() / 1_000_000_000 }
}

/// The kernel's random generator.
public enum SystemRandom {
  /// A source fit for keys.
  public static func source() -> RandomSource {
    RandomSource {
      var generator = SystemRandomNumberGenerator()
      return generator.next()
    }
  }
}
