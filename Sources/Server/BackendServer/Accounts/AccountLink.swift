import PalbeAccountsCore
import PalbeBackendCore
import PalbeServerObservation
import Synchronization

/// Accounts beside a delivery server: each of the two needs the other, and this holds one end until both are there.
final class AccountLink: Sendable {
  let service: AccountService
  private let ends: Ends

  private final class Ends: Sendable {
    let loop = Mutex<BackendLoop?>(nil)
    let hub = Mutex<RealtimeHub?>(nil)
  }

  /// Accounts in a data folder.
  init(folder: DataFolder, settings: AccountSettings, mayBeNew: Bool, log: ServerLog, faults: FaultLog)
    throws
  {
    let ends = Ends()
    self.ends = ends
    service = try AccountService(
      folder: folder.root, settings: settings, log: log, faults: faults, mayBeNew: mayBeNew,
      register: { user, done in
        guard let loop = ends.loop.withLock({ $0 }) else { return done(.unavailable(.overloaded)) }
        loop.ask(BackendCall(.registerUser, from: Caller(user: user, device: nil))) { result in
          if case .failure(let failure) = result { done(failure) } else { done(nil) }
        }
      }, sessionsEnded: { sessions in ends.hub.withLock { $0 }?.end(sessions) })
  }

  /// From now on users are registered, and sockets of sessions that are over are closed.
  func connect(_ loop: BackendLoop, _ hub: RealtimeHub) {
    ends.loop.withLock { $0 = loop }
    ends.hub.withLock { $0 = hub }
  }

  // None of the service's threads has this object.
  deinit { service.stop() }

  func stop() {
    service.stop()
    ends.loop.withLock { $0 = nil }
    ends.hub.withLock { $0 = nil }
  }
}
