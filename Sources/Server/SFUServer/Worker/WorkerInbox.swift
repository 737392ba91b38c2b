import PalbeEventLoop
import PalbeSFUCore
import PalbeUnits
import Synchronization

/// What other threads tell a worker.
///
/// Two mailboxes: what clients say is bounded and may be refused; that a client is gone is never lost, and
/// there is at most one such message for each connection. `take` gives a client's messages before its end.
final class WorkerInbox: Sendable {
  /// From clients.
  enum Signal: Sendable {
    case join(SignalingConnection, JoinDetails)
    case signal(SignalingConnection, [UInt8])
  }

  /// From the server.
  enum Control: Sendable {
    case closed(ConnectionID)
    /// Carry out an operator's command, and say on the worker's thread what came of it.
    case command(RoomCommand, @Sendable (RoomAnswer) -> Void)
    /// No new rooms.
    case drain
    /// Other settings, and who renews tokens.
    case reconfigure(SFUConfiguration, TokenMinter?)
    /// Say on the worker's thread what is here and what happened.
    case measure(@Sendable (WorkerStatistics) -> Void)
    /// Shut down and end the thread.
    case stop
  }

  /// Many times what one client may have waiting, so that none uses up the room of the others.
  static let signalCapacity = 16_384

  private let signals: Mailbox<Signal>
  private let controls: Mailbox<Control>
  private let turnedAt: Atomic<Int64>
  private let participants = Atomic<Int>(0)
  private let dropped = Atomic<Int>(0)

  init() throws(SystemError) {
    signals = try Mailbox(capacity: Self.signalCapacity)
    // Refuses nothing: an end that is lost leaves a participant in its room for ever. It is bounded all the same, by
    // one end or command for each connection the web server holds, and the server's one `stop`.
    controls = try Mailbox(capacity: .max)
    turnedAt = Atomic(MonotonicClock.now().nanoseconds)
  }

  // MARK: Any thread

  /// False when the worker does not keep up or has ended.
  func post(_ message: Signal) -> Bool { signals.send(message) }

  func post(_ message: Control) { controls.send(message) }

  /// False when a message of a client's would be refused.
  var hasRoom: Bool { signals.hasRoom }

  /// When the worker last looked at its work.
  var lastTurn: Instant { Instant(nanoseconds: turnedAt.load(ordering: .relaxed)) }

  /// Participants in the worker's rooms when it last looked at its work.
  var participantCount: Int { participants.load(ordering: .relaxed) }

  /// Datagrams that the kernel did not take.
  var droppedCount: Int { dropped.load(ordering: .relaxed) }

  // MARK: The worker's thread

  func setParticipantCount(_ count: Int) { participants.store(count, ordering: .relaxed) }

  func addDropped(_ count: Int) { dropped.wrappingAdd(count, ordering: .relaxed) }

  /// Readable when something waits.
  var fileDescriptors: [Int32] { [signals.wakeUp.fileDescriptor, controls.wakeUp.fileDescriptor] }

  func markTurn(at now: Instant) { turnedAt.store(now.nanoseconds, ordering: .relaxed) }

  /// Replaces both arrays by what waits, which is to be handled in this order.
  func take(signals taken: inout [Signal], controls takenControls: inout [Control]) {
    // The end of a client was posted after its last message: taken first, it cannot overtake that.
    controls.drain(into: &takenControls)
    signals.drain(into: &taken)
  }

  func close() {
    signals.close()
    controls.close()
  }
}
