import PalbeEventLoop
import PalbeSFUCore
import PalbeServerObservation
import PalbeUnits
import Testing

@_spi(Testing) @testable import PalbeSFUServer
@testable import PalbeWebServer

@Suite("What a worker is told")
struct InboxTests {
  private func connection(_ inbox: WorkerInbox) -> (SignalingConnection, WebSocket) {
    let socket = WebSocket(queueByteLimit: 1 << 20) { _ in }
    return (SignalingConnection(socket: socket, inbox: inbox), socket)
  }

  private func closeCode(_ socket: WebSocket) -> UInt16? { socket.withQueue { $0.close?.code } }

  @Test("the end of a client comes after all it said, and is never lost")
  func order() throws {
    let inbox = try WorkerInbox()
    let (client, _) = connection(inbox)
    while inbox.post(.signal(client, [])) {}
    client.closed(WebSocketClosure(code: 1_000))
    var signals: [WorkerInbox.Signal] = []
    var controls: [WorkerInbox.Control] = []
    inbox.take(signals: &signals, controls: &controls)
    #expect(signals.count == WorkerInbox.signalCapacity)
    #expect(controls.count == 1)
    inbox.take(signals: &signals, controls: &controls)
    #expect(signals.isEmpty && controls.isEmpty)
  }

  @Test("a client whose unread messages pile up is closed, and others are still heard")
  func pileUp() throws {
    let inbox = try WorkerInbox()
    let (flooder, socket) = connection(inbox)
    let message = [UInt8](repeating: 0, count: 100_000)
    var accepted = 0
    while closeCode(socket) == nil {
      flooder.received(binary: message)
      accepted += 1
    }
    #expect(accepted - 1 == SignalingConnection.waitingByteLimit / (100_000 + 1_024))
    #expect(closeCode(socket) == 1_008)
    // What was read makes room again, for whoever behaves.
    let (other, otherSocket) = connection(inbox)
    for _ in 0..<50 {
      other.received(binary: message)
      other.taken(byteCount: message.count)
    }
    #expect(closeCode(otherSocket) == nil)
    // Small messages cost their overhead.
    let (small, smallSocket) = connection(try WorkerInbox())
    for _ in 0...1_024 { small.received(binary: []) }
    #expect(closeCode(smallSocket) == 1_008)
  }

  @Test("a full inbox ends who fills it with 1013")
  func full() throws {
    let inbox = try WorkerInbox()
    let (client, socket) = connection(inbox)
    while inbox.post(.signal(client, [])) {}
    let (late, lateSocket) = connection(inbox)
    late.received(binary: [1])
    #expect(closeCode(lateSocket) == 1_013)
    #expect(closeCode(socket) == nil)
  }

  @Test("a worker logs at most 200 lines a second, and says how many it left out")
  func budget() {
    var budget = LogBudget()
    let start = Instant(nanoseconds: 5_000_000_000)
    for _ in 0..<200 { #expect(budget.take(at: start) == .write) }
    for _ in 0..<7 { #expect(budget.take(at: start) == .suppress) }
    #expect(budget.take(at: start + .seconds(1)) == .writeAfter(suppressed: 7))
    #expect(budget.take(at: start + .seconds(1)) == .write)
  }
}
