import Glibc
import PalbeEventLoop
import PalbeSFUCore
import PalbeServerObservation
import PalbeUnits

/// Tells an operator's servers what happens in rooms (livekit-protocol.md §2, "Webhooks").
///
/// ## Overview
///
/// Workers `post` notices and never wait. One thread writes each as a JSON event, signs it anew for every
/// attempt, and sends several at once through libcurl; `WebhookQueue` keeps a room's events in order and
/// tries again. What finds no place is dropped, counted and logged.
final class WebhookSender: Sendable {
  struct Settings: Sendable {
    /// Nil: nobody is told until `change`.
    var target: WebhookTarget?
    /// A PEM file of certificate authorities to trust instead of the system's.
    var authorities: String?
    /// Events that wait, each counted once for every URL.
    var capacity = 8_192
    /// An attempt that takes longer has failed.
    var timeout = TimeDelta.seconds(10)
    /// The wait after a first failure; it doubles with each further one.
    var firstWait = TimeDelta.milliseconds(500)
    /// What waits at `stop` has this long.
    var farewell = TimeDelta.seconds(2)
  }

  private let inbox: WebhookInbox
  private let thread: WorkerThread

  init(_ settings: Settings, log: ServerLog) throws(SystemError) {
    guard let inbox = WebhookInbox(capacity: settings.capacity, target: settings.target) else {
      throw SystemError(.pthreadCreate, code: ENOMEM)
    }
    self.inbox = inbox
    thread = try WorkerThread(name: "webhooks") {
      var loop = WebhookLoop(settings, inbox: inbox, log: log)
      loop.run()
    }
  }

  /// For any thread; never waits.
  func post(_ notice: RoomNotice) { inbox.post(notice) }

  /// Events from now on go there; attempts from now on, of earlier events too, are signed so. Nil: nobody is told any more.
  func change(to target: WebhookTarget?) { inbox.change(to: target) }

  /// Gives what waits a last moment, then ends the thread.
  func stop() {
    if inbox.stop() { thread.join() }
  }
}
