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
  /// What the shell has still to be told. It drains this after each input, and one input makes few: none is dropped.
  var events = BoundedQueue<SFUEvent>(limit: .max)
  /// What is dropped here, as a network would drop it, is repeated or outdated soon.
  var datagrams = BoundedQueue<WaitingDatagram>(limit: 4_096)
  /// A subscriber repeats the request that is dropped here.
  var repairs = BoundedQueue<WaitingRepair>(limit: 4_096)
  /// The time of the input in hand.
  var now: Instant
  /// No timer is due before this.
  private(set) var nextDeadline = Instant.distantFuture

  init(configuration: SFUConfiguration, identity: DTLSIdentity, clock: WallClock, random: RandomSource) {
    self.configuration = configuration
    self.identity = identity
    self.clock = clock
    now = clock.origin
    self.random = random
  }

  /// Timers run on this grid: a round looks at every participant, so it must not be one per participant.
  private static let grid: Int64 = 2_000_000

  /// Makes the worker look at its timers at `instant`, or up to 2 ms later.
  func wake(at instant: Instant) {
    guard instant < nextDeadline else { return }
    let late = instant.nanoseconds % Self.grid
    nextDeadline = late == 0 ? instant : instant + TimeDelta(nanoseconds: Self.grid - late)
  }

  /// Begins a round over all timers, in which each says anew when it is due.
  func restartDeadlines() { nextDeadline = .distantFuture }

  func send(_ message: LiveKit.SignalResponse.Message, to connection: ConnectionID) {
    events.append(.send(connection, LiveKit.SignalResponse(message).serialized()))
  }

  func notify(
    _ event: RoomNotice.Event, _ room: Room, _ participant: Participant? = nil,
    _ track: LiveKit.TrackInfo? = nil
  ) {
    events.append(
      .notice(
        RoomNotice(
          event: event, room: room.info, participant: participant?.info, track: track,
          createdAt: clock.unixMilliseconds(at: now) / 1_000)))
  }

  func log(_ level: SFULogRecord.Level, _ message: String, _ fields: [(name: String, value: String)] = []) {
    events.append(.log(SFULogRecord(level, message, fields)))
  }
}
