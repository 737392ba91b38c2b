import PalbeAccountsCore
import PalbeBackendCore
import PalbeCrypto
import PalbeEventLoop
import PalbeSQLStore
import PalbeServerObservation
import PalbeUnits
import Synchronization

/// How a server has accounts.
package struct AccountSettings: Sendable {
  /// What was decided about them.
  package var rules = AccountRules()
  /// Whose word about who somebody is counts.
  package var providers: [ProviderSettings] = []
  /// Passwords that are hashed at once, each in 32 MiB.
  package var passwordThreads = 2
  /// Passwords that wait to be hashed; a further one is answered with 503.
  package var waitingPasswords = 64
  /// Requests that are being answered; a further one is answered with 503.
  package var waitingRequests = 1_024
  /// The shortest time between two fetches of a provider's keys.
  package var keyFetchInterval = TimeDelta.seconds(30)

  /// The settings above.
  package init() {}

  /// Whether a first sign-in makes the account.
  package var isDevelopment: Bool {
    get { rules.signInCreatesAccount }
    set { rules.signInCreatesAccount = newValue }
  }
}

/// Accounts, sessions and tokens of a server: the routes below /v1/auth/, and who has an access token.
///
///     let accounts = try AccountService(folder: "/var/lib/palbe", settings: settings, log: log, register: …, sessionsEnded: …)
///     let table = RouteTable(devices: tokens, others: RouteTable.accountRoutes(accounts))
///     let caller = try accounts.session(token: token)
///
/// ## Overview
///
/// One thread owns the accounts and their SQLite file; a few hash passwords; one waits for identity providers. The web server's
/// thread reads a request and leaves a job; an answer goes out when what it says is durable. Access tokens are verified
/// on any thread, without one of these.
package final class AccountService: SessionVerifier {
  /// Why it did not start, in words for a person.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// Makes a user known to the delivery server; the answer nil says that it is.
  package typealias Registration =
    @Sendable (UserID, @escaping @Sendable (BackendFailure?) -> Void) -> Void

  let settings: AccountSettings
  let passwords: WorkQueue
  let identities: IdentityService?
  let register: Registration
  private let view: AccountView
  private let mailbox: Mailbox<AccountThread.Job>
  private let thread: WorkerThread
  private let waiting = Atomic<Int>(0)
  private let isStopped = Atomic<Bool>(false)

  /// Opens `accounts.sqlite` and the keys in `keys/` of a folder, which are made where there are none.
  /// - Parameters:
  ///   - mayBeNew: whether there may be no accounts and no keys yet.
  ///   - register: called on the accounts' thread, at each sign-in, before its answer goes out.
  ///   - sessionsEnded: called on the accounts' thread; their tokens are refused already.
  package init(
    folder: String, settings: AccountSettings, log: ServerLog, faults: FaultLog? = nil, mayBeNew: Bool = true,
    register: @escaping Registration,
    sessionsEnded: @escaping @Sendable ([SessionID]) -> Void
  ) throws {
    self.settings = settings
    self.register = register
    let now = ServerTime.now
    let keysFile = DataKey.tokenSigning.file(in: folder)
    let (keys, refreshKey) = try Self.keys(folder, keysFile, mayBeNew, at: now)
    let file = folder + "/accounts.sqlite"
    var accounts: Accounts<SQLiteAccountStore>
    let store: SQLiteAccountStore
    do {
      store = try SQLiteAccountStore(path: file, mayBeNew: mayBeNew)
      accounts = try Accounts(
        store: store, keys: keys, refreshKey: refreshKey.key.copy(),
        random: SystemRandom.source(),
        rules: settings.rules, at: now)
    } catch let error as SQLError {
      throw Failure(description: "cannot open \(file): \(error.words)")
    } catch { throw Failure(description: "cannot open \(file): \(error)") }
    // Before anybody asks: they may have to be replaced altogether.
    if let keys = accounts.rotatedKeys(at: now) {
      do throws(KeyFile.Failure) { try keysFile.replace(keys.serialized) } catch {
        throw Failure(description: error.description)
      }
      accounts.adopt(keys)
    }
    do throws(SystemError) {
      let view = AccountView(accounts)
      let mailbox = try Mailbox<AccountThread.Job>(capacity: .max)
      let poller = try Poller()
      try poller.add(mailbox.wakeUp.fileDescriptor, token: 0)
      passwords = try WorkQueue(
        name: "passwords", threads: settings.passwordThreads, capacity: settings.waitingPasswords)
      identities =
        settings.providers.isEmpty
        ? nil : try IdentityService(settings.providers, interval: settings.keyFetchInterval, log: log)
      let moved = Moved(
        state: AccountThread(
          accounts, store: store, keysFile: keysFile, view: view, mailbox: mailbox, log: log,
          faults: faults ?? FaultLog(log), sessionsEnded: sessionsEnded))
      thread = try WorkerThread(name: "accounts", moving: poller) { poller in
        var poller = poller
        moved.state.run(&poller)
      }
      self.view = view
      self.mailbox = mailbox
    } catch { throw Failure(description: error.description) }
  }

  /// The state is made here and used by its thread only.
  private struct Moved: @unchecked Sendable { let state: AccountThread }

  private static func keys(
    _ folder: String, _ keysFile: KeyFile, _ mayBeNew: Bool, at now: ServerTime
  ) throws(Failure) -> (SigningKeys, Secret) {
    do throws(KeyFile.Failure) {
      try KeyFile.makeFolder(folder + "/keys")
      let refreshKey = Secret(
        try DataKey.refreshTokens.file(in: folder)
          .readOrMake(byteCount: DataKey.byteCount, mayBeNew: mayBeNew))
      if let bytes = try keysFile.read() {
        guard let keys = SigningKeys(serialized: bytes.span) else {
          throw KeyFile.Failure(description: "\(keysFile.path) is damaged")
        }
        return (keys, refreshKey)
      }
      guard mayBeNew else { throw keysFile.lost }
      var random = SystemRandom.source()
      let keys = SigningKeys(at: now.wall, using: &random)
      try keysFile.replace(keys.serialized)
      return (keys, refreshKey)
    } catch { throw Failure(description: error.description) }
  }

  /// Answers what is under way, and ends the threads. Must be called; not on one of these threads.
  package func stop() {
    guard !isStopped.exchange(true, ordering: .acquiringAndReleasing) else { return }
    identities?.stop()
    passwords.stop()
    mailbox.send { $0.isStopping = true }
    mailbox.close()
    thread.join()
  }

  // MARK: Any thread

  /// Who has this access token; cheap.
  /// - Throws: `notSignedIn` for a token that nobody here has signed, `sessionExpired` for one that is over or whose session is.
  package func session(token: String) throws(BackendFailure) -> VerifiedSession { try view.session(token) }

  /// The key set with which others verify access tokens.
  package var keySet: [UInt8] { view.keySetJSON.withLock { $0 } }

  /// What is going on, for metrics.
  package struct Statistics: Sendable {
    /// Passwords that wait to be hashed or are being hashed.
    package var passwordCount: Int
    /// Requests that are being answered.
    package var requestCount: Int
    /// Sessions whose tokens are refused though their time is not over.
    package var refusedCount: Int
    /// Refresh tokens that were used twice since the start.
    package var theftCount: Int
  }

  /// What is going on now.
  package var statistics: Statistics {
    Statistics(
      passwordCount: passwords.jobCount, requestCount: waiting.load(ordering: .relaxed),
      refusedCount: view.refusedCount, theftCount: view.theftCount.load(ordering: .relaxed))
  }

  /// A device was enrolled with a session, which its user sees in the list of sessions.
  package func enrolled(_ device: DeviceID, with session: SessionID) {
    perform { thread in
      thread.note { (accounts) throws(AccountFailure) in try accounts.setDevice(device, of: session) }
    }
  }

  /// A device is no longer its user's: its sessions end.
  package func revoked(_ device: DeviceID) {
    perform { thread in
      thread.note { (accounts) throws(AccountFailure) in try accounts.endSessions(of: device, at: .now) }
      thread.settle()
    }
  }

  /// Copies `accounts.sqlite` to a file, and waits for it; not on the accounts' thread. The copy is not synced.
  package func copy(to path: String) throws {
    let outcome = Awaited<String?>()
    let isTaken = mailbox.send { thread in
      do throws(SQLError) {
        try thread.store.connection.backUp(to: path)
        outcome.set(nil)
      } catch { outcome.set("cannot copy accounts.sqlite: \(error.words)") }
    }
    if let reason = isTaken ? outcome.wait() : "accounts have ended" { throw Failure(description: reason) }
  }

  /// Leaves a job to the accounts' thread.
  func perform(_ job: @escaping AccountThread.Job) { mailbox.send(job) }

  // MARK: Counting

  /// Counts a request until `finished`; false when there are too many of them.
  func begin() -> Bool { waiting.add(1, ordering: .relaxed).newValue <= settings.waitingRequests }

  func finished() { waiting.subtract(1, ordering: .relaxed) }
}
