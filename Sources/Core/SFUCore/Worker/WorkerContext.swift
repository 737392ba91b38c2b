import PalbeDTLS
import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits

/// What everything on one worker shares: its settings, its clock, and the ways out.
final class WorkerContext {
  let configuration: SFUConfiguration
  let identity: DTLSIdentity
  let clock: WallClock
  var random: RandomSource
  var events = EventQueue()
  var datagrams = DatagramQueue()
  var repairs = RepairQueue()
  /// No timer is due before this.
  private(set) var nextDeadline = Instant.distantFuture

  init(configuration: SFUConfiguration, identity: DTLSIdentity, clock: WallClock, random: RandomSource) {
    self.configuration = configuration
    self.identity = identity
    self.clock = clock
    self.random = random
  }

  /// Makes the worker look at its timers at `instant` at the latest.
  func wake(at instant: Instant) { nextDeadline = min(nextDeadline, instant) }

  /// Begins a round over all timers, in which each says anew when it is due.
  func restartDeadlines() { nextDeadline = .distantFuture }

  func send(_ message: LiveKit.SignalResponse.Message, to connection: ConnectionID) {
    events.append(.send(connection, LiveKit.SignalResponse(message).serialized()))
  }

  func log(_ level: SFULogRecord.Level, _ message: String, _ fields: [(name: String, value: String)] = []) {
    events.append(.log(SFULogRecord(level, message, fields)))
  }
}
