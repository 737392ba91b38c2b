import PalbeEventLoop
import PalbeSFUCore
import PalbeServerObservation
import PalbeUnits
import PalbeWebServer
import Synchronization

extension SFUServer {
  /// How metrics are told.
  public struct MetricsConfiguration: Sendable, Equatable {
    /// The TCP port; 0 takes any free one.
    public var port: UInt16
    /// Who may ask; everybody when both are empty.
    public var username = ""
    public var password = ""

    /// Metrics for everybody.
    public init(port: UInt16) { self.port = port }
  }
}

/// Answers `/metrics` on the metrics' own port: asks every worker what it has, and adds up.
///
/// A packet costs nothing for it: workers count nothing that they would not count for their reports, and add up when they are
/// asked.
final class MetricsService: WebServerHandler {
  private let page: MetricsPage
  private let inboxes: [WorkerInbox]
  private let pauses: AcceptPauses
  private let isReady: @Sendable () -> Bool
  private let startedAt = WallClock.unixSeconds

  init(
    _ configuration: SFUServer.MetricsConfiguration, inboxes: [WorkerInbox], pauses: AcceptPauses,
    isReady: @escaping @Sendable () -> Bool
  ) {
    page = MetricsPage(username: configuration.username, password: configuration.password)
    self.inboxes = inboxes
    self.pauses = pauses
    self.isReady = isReady
  }

  func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision {
    .reject(.text("not found", status: 404))
  }

  func respond(to request: HTTPRequest, with responder: HTTPResponder) {
    if let refusal = page.refusal(of: request) { return responder.send(refusal) }
    let answers = Answers(waitingFor: inboxes.count)
    responder.late = .text("a worker did not answer in time", status: 503)
    for inbox in inboxes {
      inbox.post(
        .measure { statistics in
          guard let all = answers.add(statistics) else { return }
          responder.send(self.page.answer(self.exposition(all)))
        })
    }
  }

  /// Adds up what workers say, on their threads.
  private final class Answers: Sendable {
    private let state: Mutex<(waiting: Int, sum: WorkerStatistics?)>

    init(waitingFor count: Int) { state = Mutex((count, nil)) }

    /// The sum with the last of them.
    func add(_ statistics: WorkerStatistics) -> WorkerStatistics? {
      state.withLock { state in
        state.waiting -= 1
        if state.sum == nil { state.sum = statistics } else { state.sum?.add(statistics) }
        return state.waiting == 0 ? state.sum : nil
      }
    }
  }

  func exposition(_ all: WorkerStatistics) -> Exposition {
    var text = Exposition()
    text.addRooms(all)
    text.addMedia(all.totals)
    text.add(pauses, of: "palbe_sfu")
    text.addProcess(startedAt: startedAt)
    text.family("palbe_sfu_info", .gauge, "The version, always 1.") {
      $0.sample([("version", Release.version)], value: 1)
    }
    text.family("palbe_sfu_ready", .gauge, "1 while new rooms are taken.") {
      $0.sample(value: isReady() ? 1 : 0)
    }
    text.family("palbe_sfu_datagrams_dropped_total", .counter, "Datagrams that the kernel did not take.") {
      $0.sample(value: inboxes.reduce(0) { $0 + $1.droppedCount })
    }
    return text
  }
}
