import PalbeDataChannels
import PalbeEventLoop
import Synchronization

/// A message that knows what it takes to keep it.
protocol Weighed: Sendable {
  /// Bytes, about.
  var weight: Int { get }
}

/// A mailbox that counts the bytes in it, so that each message can have its own bound.
final class SCTPLane<Message: Weighed>: Sendable {
  private let mailbox: Mailbox<Message>
  private let waiting = Atomic<Int>(0)

  init() throws(SystemError) { mailbox = try Mailbox(capacity: .max) }

  var fileDescriptor: Int32 { mailbox.wakeUp.fileDescriptor }

  /// Bytes that wait.
  var byteCount: Int { waiting.load(ordering: .relaxed) }

  /// False when more than `limit` bytes would wait, or after the end; the message is then dropped.
  @discardableResult
  func send(_ message: Message, limit: Int = .max) -> Bool {
    let weight = message.weight
    guard byteCount <= limit - weight else { return false }
    waiting.wrappingAdd(weight, ordering: .relaxed)
    guard mailbox.send(message) else {
      waiting.wrappingSubtract(weight, ordering: .relaxed)
      return false
    }
    return true
  }

  /// Replaces `messages` by all that wait.
  func drain(into messages: inout [Message]) {
    mailbox.drain(into: &messages)
    let weight = messages.reduce(0) { $0 + $1.weight }
    waiting.wrappingSubtract(weight, ordering: .relaxed)
  }

  func close() { mailbox.close() }
}

extension SCTPCommand: Weighed {
  var weight: Int {
    switch self {
    case .datagram(_, let bytes): 64 + bytes.count
    case .send(let destinations, _, let bytes, _): 64 + 32 * destinations.count + bytes.count
    case .open, .openChannel, .closeChannel, .close, .discard: 64
    }
  }
}

extension SCTPReport: Weighed {
  var weight: Int {
    switch self {
    case .transmit(_, let bytes): 64 + bytes.count
    case .event(_, .message(let message)): 64 + message.bytes.count
    case .event, .refused: 64
    }
  }
}

/// What a worker and the thread that owns SCTP tell each other.
///
/// Both ways are bounded. Datagrams are dropped first, and SCTP repeats them: so a peer that floods, and a thread that does
/// not keep up, slow clients down and fill nothing. While the worker is behind, its peers' datagrams are dropped too, so that
/// no more messages come for it.
final class SCTPPort: Sendable {
  static let datagramLimit = 8 << 20
  static let messageLimit = 64 << 20
  static let reportLimit = 8 << 20

  /// Names the worker in `SCTPPeer`.
  let number: Int
  fileprivate let commands: SCTPLane<SCTPCommand>
  fileprivate let reports: SCTPLane<SCTPReport>

  init(number: Int) throws(SystemError) {
    self.number = number
    commands = try SCTPLane()
    reports = try SCTPLane()
  }

  // MARK: The worker's thread

  /// Readable when reports wait.
  var reportsDescriptor: Int32 { reports.fileDescriptor }

  /// What was not taken is answered here.
  func send(_ command: SCTPCommand, refused: (SCTPReport) -> Void) {
    switch command {
    case .datagram: commands.send(command, limit: Self.datagramLimit)
    case .send(let destinations, _, _, _):
      guard !commands.send(command, limit: Self.messageLimit) else { return }
      for destination in destinations {
        let error = SCTPError.bufferFull(buffered: Self.messageLimit)
        refused(.refused(destination.peer, channel: destination.channel, error))
      }
    // Each worker makes few of them for each of its participants.
    case .open, .openChannel, .closeChannel, .close, .discard: commands.send(command)
    }
  }

  func takeReports(into taken: inout [SCTPReport]) { reports.drain(into: &taken) }

  // MARK: The thread that owns SCTP

  /// Readable when commands wait.
  var commandsDescriptor: Int32 { commands.fileDescriptor }

  func takeCommands(into taken: inout [SCTPCommand]) { commands.drain(into: &taken) }

  /// The worker does not keep up: nothing more should come for it.
  var isBehind: Bool { reports.byteCount > Self.reportLimit }

  func send(_ report: SCTPReport) {
    switch report {
    case .transmit: reports.send(report, limit: Self.reportLimit)
    case .event, .refused: reports.send(report)
    }
  }

  func close() {
    commands.close()
    reports.close()
  }
}
