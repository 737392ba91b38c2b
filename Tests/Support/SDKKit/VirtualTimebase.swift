import Palbase
import PalbeUnits
import Synchronization

/// Clocks that a test moves. Who sleeps is let go at once, and the time is then later.
public final class VirtualTimebase: Sendable {
  private struct State {
    var now = Instant(nanoseconds: 1_000_000_000_000)
    var wall: Int64 = 1_800_000_000_000
    var slept: [TimeDelta] = []
    var random = RandomSource(seed: 7)
    /// Above this nobody is let go any more, so that a loop without an end is found.
    var sleepLimit = 10_000
  }
  private let state = Mutex(State())
  private let boot: String

  public init(boot: String = "boot-1") { self.boot = boot }

  /// Moves both clocks.
  public func advance(by delta: TimeDelta) {
    state.withLock {
      $0.now += delta
      $0.wall += delta.wholeMilliseconds
    }
  }

  /// Sets the time of day alone.
  public func setWall(by milliseconds: Int64) { state.withLock { $0.wall += milliseconds } }

  public var now: Instant { state.withLock { $0.now } }
  /// Every wait so far.
  public var slept: [TimeDelta] { state.withLock { $0.slept } }

  package var timebase: Timebase {
    Timebase(
      now: { self.now }, wallMilliseconds: { self.state.withLock { $0.wall } }, bootToken: boot,
      sleep: { delta in
        try Task.checkCancellation()
        let isFine = self.state.withLock { state in
          state.slept.append(delta)
          state.now += delta
          state.wall += delta.wholeMilliseconds
          return state.slept.count < state.sleepLimit
        }
        if !isFine { throw CancellationError() }
        // Others get their turn, as in a real wait.
        await Task.yield()
      }, random: { self.state.withLock { $0.random.next() } })
  }
}

/// Secrets in memory.
public final class MemoryVault: KeyVault {
  private let secrets = Mutex<[String: [UInt8]]>([:])
  private let fault = Mutex<StoreFault?>(nil)

  public init() {}

  /// Makes every write fail; nil makes them work again.
  public func fail(with fault: StoreFault?) { self.fault.withLock { $0 = fault } }

  package func read(_ name: String) throws(StoreFault) -> [UInt8]? { secrets.withLock { $0[name] } }
  package func write(_ secret: [UInt8], as name: String) throws(StoreFault) {
    if let fault = fault.withLock({ $0 }) { throw fault }
    secrets.withLock { $0[name] = secret }
  }
  package func remove(_ name: String) throws(StoreFault) {
    if let fault = fault.withLock({ $0 }) { throw fault }
    secrets.withLock { $0[name] = nil }
  }
  package func names() throws(StoreFault) -> [String] { secrets.withLock { $0.keys.sorted() } }
}
