import Foundation
package import PalbeUnits

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The clocks, as an argument: a test brings its own, in which nothing sleeps.
package struct Timebase: Sendable {
  /// A clock that never jumps and goes on while the machine sleeps.
  package var now: @Sendable () -> Instant
  /// The time of day in milliseconds since 1970; it may jump.
  package var wallMilliseconds: @Sendable () -> Int64
  /// Changes with each start of the machine, when `now` starts again.
  package var bootToken: String
  /// Waits; throws `CancellationError`.
  package var sleep: @Sendable (TimeDelta) async throws -> Void
  /// Fresh randomness for jitter and keys.
  package var random: @Sendable () -> UInt64

  package init(
    now: @escaping @Sendable () -> Instant, wallMilliseconds: @escaping @Sendable () -> Int64,
    bootToken: String, sleep: @escaping @Sendable (TimeDelta) async throws -> Void,
    random: @escaping @Sendable () -> UInt64
  ) {
    self.now = now
    self.wallMilliseconds = wallMilliseconds
    self.bootToken = bootToken
    self.sleep = sleep
    self.random = random
  }

  /// The machine's.
  package static let system = Timebase(
    now: { Instant(nanoseconds: read(steadyClock)) },
    wallMilliseconds: { read(CLOCK_REALTIME) / 1_000_000 },
    bootToken: (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8))?
      .trimmingCharacters(in: .whitespacesAndNewlines) ?? "",
    sleep: { try await Task.sleep(nanoseconds: UInt64(max(0, $0.nanoseconds))) },
    random: {
      var generator = SystemRandomNumberGenerator()
      return generator.next()
    })

  #if canImport(Darwin)
    private static let steadyClock = CLOCK_MONOTONIC
  #else
    private static let steadyClock = CLOCK_BOOTTIME
  #endif

  private static func read(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return TimeDelta.reading(seconds: time.tv_sec, nanoseconds: time.tv_nsec).nanoseconds
  }

  /// A source for what takes one.
  package var randomSource: RandomSource { RandomSource(random) }

  /// Between half of `delta` and `delta`.
  package func jittered(_ delta: TimeDelta) -> TimeDelta {
    delta.jittered(random())
  }
}

/// When something happened, on both clocks, so that its age can be told after a restart of the process or of the
/// machine, and however the time of day is set (S0-85).
package struct TimeStamp: Codable, Sendable, Hashable {
  package var boot: String
  package var steadyNanoseconds: Int64
  package var wallMilliseconds: Int64

  package init(_ time: Timebase) {
    boot = time.bootToken
    steadyNanoseconds = time.now().nanoseconds
    wallMilliseconds = time.wallMilliseconds()
  }

  /// The time since: within one run of the machine the larger of what both clocks say, afterwards the time of
  /// day. Nil when the clock was set to before the stamp.
  package func age(_ time: Timebase) -> TimeDelta? {
    let now = time.wallMilliseconds()
    let (wall, isTooFar) = now.subtractingReportingOverflow(wallMilliseconds)
    let (nanoseconds, isTooLong) = wall.multipliedReportingOverflow(by: 1_000_000)
    let byWall = isTooFar || isTooLong ? (now < wallMilliseconds ? .min : .max) : nanoseconds
    guard boot == time.bootToken, !boot.isEmpty else {
      return byWall < 0 ? nil : TimeDelta(nanoseconds: byWall)
    }
    return max(time.now() - Instant(nanoseconds: steadyNanoseconds), TimeDelta(nanoseconds: byWall))
  }
}

extension TimeDelta {
  /// Between half of it and all of it.
  func jittered(_ random: UInt64) -> TimeDelta {
    let half = max(0, nanoseconds / 2)
    return TimeDelta(nanoseconds: half + Int64(random % UInt64(half + 1)))
  }
}
