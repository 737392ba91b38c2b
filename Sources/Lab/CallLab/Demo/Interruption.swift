import Glibc
import Synchronization

/// Notices SIGINT and SIGTERM, whatever threads there are and whichever of them block signals.
///
/// A handler only counts; a task that polls acts. The thread that keeps the signals deliverable exists as long as the
/// process, of which one demo is run.
enum Interruption {
  private static let received = Atomic<Int32>(0)

  /// The signal that came since `watch()`; nil when none did.
  static var signal: Int32? {
    let signal = received.load(ordering: .relaxed)
    return signal == 0 ? nil : signal
  }

  /// From now on the two signals do not end the process.
  static func watch() {
    received.store(0, ordering: .relaxed)
    for number in [SIGINT, SIGTERM] {
      var action = sigaction()
      action.__sigaction_handler.sa_handler = { number in
        Interruption.received.store(number, ordering: .relaxed)
      }
      action.sa_flags = SA_RESTART
      sigaction(number, &action, nil)
    }
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { _ in
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        sigaddset(&signals, SIGTERM)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        while true { pause() }
      }, nil)
    pthread_detach(thread)
  }

  /// Both signals end the process again.
  static func unwatch() {
    for number in [SIGINT, SIGTERM] {
      var action = sigaction()
      action.__sigaction_handler.sa_handler = SIG_DFL
      sigaction(number, &action, nil)
    }
  }
}
