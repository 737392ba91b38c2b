import PalbeAccountsCore
import PalbeBackendCore
import PalbeCrypto
import PalbeEventLoop
import PalbeServerObservation
import PalbeUnits
import PalbeWebTokens
import Synchronization

/// What other threads see of the accounts: what verifies tokens, and which sessions are refused.
///
/// Tokens that were verified lately are known by their hash, because a signature costs as much to verify as the rest of a
/// request. Each hash has one place; another one that comes there takes it.
final class AccountView: Sendable {
  private struct Known {
    let digest: [UInt8]
    let session: VerifiedSession
  }
  private struct State {
    var verifier: AccessTokenVerifier
    var refused: [SessionID: Refusal]
    var known: [Known?]
  }
  private static let placeCount = 8_192

  private let state: Mutex<State>
  private let clock: AccountClock
  private let issuer: String
  let keySetJSON: Mutex<[UInt8]>
  /// Refresh tokens that were used twice.
  let theftCount = Atomic<Int>(0)

  init(_ accounts: borrowing Accounts<SQLiteAccountStore>) {
    issuer = accounts.rules.issuer
    clock = accounts.clock
    let keys = accounts.keys.keySet
    state = Mutex(
      State(
        verifier: AccessTokenVerifier(keys: keys, issuer: issuer), refused: accounts.refused,
        known: Array(repeating: nil, count: Self.placeCount)))
    keySetJSON = Mutex(keys.json)
  }

  var refusedCount: Int { state.withLock { $0.refused.count } }

  func setRefused(_ refused: [SessionID: Refusal]) { state.withLock { $0.refused = refused } }

  func setKeys(_ keys: SigningKeys) {
    let set = keys.keySet
    let verifier = AccessTokenVerifier(keys: set, issuer: issuer)
    state.withLock {
      $0.verifier = verifier
      $0.known = Array(repeating: nil, count: Self.placeCount)
    }
    keySetJSON.withLock { $0 = set.json }
  }

  /// Who has a token; a signature is verified outside the lock.
  func session(_ token: String) throws(BackendFailure) -> VerifiedSession {
    let now = MonotonicClock.now()
    let digest = SHA256.hash(Array(token.utf8))
    let place = (Int(digest[0]) << 8 | Int(digest[1])) % Self.placeCount
    let (verifier, known) = state.withLock { ($0.verifier, $0.known[place]) }
    let session: VerifiedSession
    if let known, known.digest == digest {
      session = known.session
      guard session.deadline > now else { throw .sessionExpired }
    } else {
      session = try verifier.session(of: token, at: clock.time(now), now)
      let new = Known(digest: digest, session: session)
      state.withLock { $0.known[place] = new }
    }
    if let refusal = state.withLock({ $0.refused[session.session] }) { throw refusal.failure }
    return session
  }
}

/// What the thread that owns the accounts has; nobody else touches it.
final class AccountThread {
  typealias Job = @Sendable (AccountThread) -> Void

  var accounts: Accounts<SQLiteAccountStore>
  let store: SQLiteAccountStore
  private let keysFile: KeyFile
  private let view: AccountView
  private let mailbox: Mailbox<Job>
  private let log: ServerLog
  private let faults: FaultLog
  private let sessionsEnded: @Sendable ([SessionID]) -> Void
  private var nextKeyCheck = Instant.zero
  private var recovery = StoreRecovery(interval: .seconds(1))
  var isStopping = false

  init(
    _ accounts: consuming Accounts<SQLiteAccountStore>, store: SQLiteAccountStore, keysFile: KeyFile,
    view: AccountView,
    mailbox: Mailbox<Job>,
    log: ServerLog, faults: FaultLog, sessionsEnded: @escaping @Sendable ([SessionID]) -> Void
  ) {
    self.accounts = accounts
    self.store = store
    self.keysFile = keysFile
    self.view = view
    self.mailbox = mailbox
    self.log = log
    self.faults = faults
    self.sessionsEnded = sessionsEnded
  }

  func run(_ poller: inout Poller) {
    var jobs: [Job] = []
    while !isStopping {
      // A wait that the kernel refuses is a turn without news.
      _ = try? poller.wait(until: nextDeadline)
      mailbox.drain(into: &jobs)
      reopenIfNeeded(at: MonotonicClock.now())
      for job in jobs { job(self) }
      jobs.removeAll(keepingCapacity: true)
      let now = ServerTime.now
      if store.isUsable, accounts.nextDeadline <= now.instant {
        accounts.handleTimeout(at: now)
        settle()
        view.setRefused(accounts.refused)
      }
      if nextKeyCheck <= now.instant { rotateKeys(at: now) }
    }
  }

  private var nextDeadline: Instant {
    var next = nextKeyCheck
    if store.isUsable { next = min(next, accounts.nextDeadline) }
    if let attempt = recovery.deadline(isUsable: store.isUsable) { next = min(next, attempt) }
    return next
  }

  /// Tells what a call of the core has changed; before its answer goes out. Returns the sessions that are over.
  @discardableResult
  func settle() -> [SessionID] {
    var ended: [SessionID] = []
    while let event = accounts.pollEvent() {
      switch event {
      case .sessionsEnded(let sessions):
        view.setRefused(accounts.refused)
        sessionsEnded(sessions)
        ended += sessions
      case .storeFault(let fault): faults.note(fault, of: .accounts)
      }
    }
    return ended
  }

  /// What a call of the core threw: it may have ended a session all the same.
  func settle(after failure: AccountFailure) {
    let ended = settle()
    if case .unavailable(let fault) = failure, fault != .overloaded { faults.note(fault, of: .accounts) }
    guard failure == .refreshTokenReused else { return }
    view.theftCount.add(1, ordering: .relaxed)
    let names = ended.map(\.text).joined(separator: ",")
    log.write(.warning, "a refresh token was used twice, its session is over", [("session", names)])
  }

  /// Carries out a call of the core whose answer nobody waits for.
  func note(
    _ body: (inout Accounts<SQLiteAccountStore>) throws(AccountFailure) -> Void
  ) {
    do throws(AccountFailure) { try body(&accounts) } catch { settle(after: error) }
  }

  /// At most once a second.
  func reopenIfNeeded(at now: Instant) {
    let outcome = recovery.attempt(at: now, isUsable: store.isUsable) {
      try store.reopen()
    } tell: {
      try accounts.storeReopened()
    }
    switch outcome {
    case .none: break
    case .recovered:
      settle()
      log.write(.info, "accounts' store opened again")
    case .failed(let error):
      log.write(.warning, "accounts' store cannot be opened", [("reason", "\(error)")])
    }
  }

  private func rotateKeys(at now: ServerTime) {
    nextKeyCheck = now.instant + .seconds(60)
    guard let keys = accounts.rotatedKeys(at: now) else { return }
    do throws(KeyFile.Failure) {
      try keysFile.replace(keys.serialized)
    } catch {
      log.write(.warning, "signing keys not rotated, again in a minute", [("reason", error.description)])
      return
    }
    accounts.adopt(keys)
    view.setKeys(keys)
    log.write(.info, "signing keys rotated", [("count", "\(keys.keySet.keys.count)")])
  }
}
