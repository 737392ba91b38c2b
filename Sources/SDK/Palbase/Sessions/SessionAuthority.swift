import Foundation
package import PalbeUnits

/// The one place that knows the session: it signs in and out, and renews tokens.
///
///     signed out ──signIn──▶ signed in ──access token stale, or 401──▶ renewing ──▶ signed in
///         ▲                     │                                        │
///         └──signOut, refused───┴────────────────refused─────────────────┘
///
/// However many callers need a new token, one request is under way, also across processes: a lock file is held
/// while a refresh token is in use, and whoever gets the lock looks first whether another process has already
/// renewed it. A refresh token is sent again only when the answer was lost, at once, which servers know from theft.
package actor SessionAuthority {
  /// The name of the session in the vault.
  static let recordName = "session"

  private let vault: any KeyVault
  private let http: HTTPClient
  private let lock: FileLock
  private let time: Timebase
  private var record: SessionRecord?
  /// Why the stored session could not be read; signing in replaces it.
  private var fault: StoreFault?
  private var refreshing: Task<SessionRecord, any Error>?

  /// Who is signed in, for everybody who follows it.
  package nonisolated let state: Broadcast<AuthState>
  /// The access token as it is, for what lives longer than a request.
  package nonisolated let tokens: Broadcast<AccessToken?>

  package init(vault: any KeyVault, http: HTTPClient, lockPath: String) {
    self.vault = vault
    self.http = http
    time = http.time
    lock = FileLock(path: lockPath, time: http.time)
    do throws(StoreFault) {
      record = try Self.load(vault)
    } catch {
      fault = error
      SDKLog.note("the stored session cannot be read: \(error)")
    }
    state = Broadcast(record.map { .signedIn($0.user) } ?? .signedOut(nil))
    tokens = Broadcast(record.map { AccessToken($0, http.time) }, backlog: 1)
  }

  /// An access token and whose it is.
  package struct AccessToken: Sendable, Equatable, CustomStringConvertible {
    package var userId: String
    package var text: String
    /// When to renew it.
    package var renewal: Instant

    init(_ record: SessionRecord, _ time: Timebase) {
      userId = record.userId
      text = record.accessToken
      renewal = time.now() + max(.zero, record.remaining(time) ?? .zero)
    }

    package var description: String { "access token of \(userId)" }
  }

  private static func load(_ vault: any KeyVault) throws(StoreFault) -> SessionRecord? {
    guard let bytes = try vault.read(recordName) else { return nil }
    struct Schema: Decodable { var schema: Int }
    guard let schema = try? JSONDecoder().decode(Schema.self, from: Data(bytes)) else {
      throw .corrupted(recordName)
    }
    guard schema.schema <= SessionRecord.currentSchema else { throw .newerSchema }
    guard let record = try? JSONDecoder().decode(SessionRecord.self, from: Data(bytes)) else {
      throw .corrupted(recordName)
    }
    return record
  }

  private func store(_ record: SessionRecord) throws(StoreFault) {
    // Strings and numbers only: it cannot fail.
    try vault.write([UInt8](try! JSONEncoder().encode(record)), as: Self.recordName)
  }

  private func adopt(_ new: SessionRecord?, _ reason: SignOutReason? = nil) {
    let old = record
    record = new
    fault = nil
    // Who hears of one finds the other already true: a person who is there has a token, one who is gone has none.
    if new != nil { tokens.send(new.map { AccessToken($0, time) }) }
    if old?.user != new?.user || old == nil && new == nil && reason != nil {
      state.send(new.map { .signedIn($0.user) } ?? .signedOut(reason))
    }
    if new == nil { tokens.send(nil) }
  }

  // MARK: Tokens

  /// A token that is worth sending, renewed if need be.
  /// - Parameter used: a token that the server refused; the answer is another one.
  package func accessToken(replacing used: String? = nil) async throws -> AccessToken {
    guard let record else {
      if let fault { throw BackendError.storeUnavailable(fault) }
      throw BackendError.client(.notSignedIn)
    }
    if used.map({ $0 != record.accessToken }) ?? !record.isStale(time) { return AccessToken(record, time) }
    let task: Task<SessionRecord, any Error>
    if let refreshing {
      task = refreshing
    } else {
      task = Task { try await refresh(record) }
      refreshing = task
    }
    let new = try await task.value
    guard new.userId == record.userId else { throw BackendError.client(.sessionExpired) }
    return AccessToken(new, time)
  }

  /// A record that came from where `old` did, renewed here or by another process.
  private func refresh(_ old: SessionRecord) async throws -> SessionRecord {
    defer { refreshing = nil }
    return try await lock.withLock { try await self.refreshLocked(old) }
  }

  private func refreshLocked(_ old: SessionRecord) async throws -> SessionRecord {
    let stored: SessionRecord?
    do throws(StoreFault) { stored = try Self.load(vault) } catch {
      throw BackendError.storeUnavailable(error)
    }
    // What happened here while this waited for the lock.
    guard record?.sessionId == old.sessionId else { throw BackendError.client(.sessionExpired) }
    guard let stored else {
      adopt(nil, .otherProcess)
      throw BackendError.client(.sessionExpired)
    }
    if stored.refreshToken != old.refreshToken {
      adopt(stored)
      return stored
    }
    do {
      let answer: TokenAnswer = try await http.send(Self.refreshCall(stored.refreshToken)).json()
      var new = try answer.record(time)
      guard new.userId == stored.userId else { throw BackendError.unexpectedAnswer(requestId: nil) }
      new.isNew = stored.isNew
      // Held in memory even when it cannot be written: the old one is of no use any more.
      adopt(new)
      do throws(StoreFault) { try store(new) } catch {
        SDKLog.note("the renewed session cannot be stored: \(error)")
      }
      return new
    } catch BackendError.server(let failure) where failure.status == 401 || failure.status == 403 {
      try? vault.remove(Self.recordName)
      adopt(nil, Self.reason(failure.code))
      throw BackendError.server(failure)
    }
  }

  private static func reason(_ code: FailureCode) -> SignOutReason {
    switch code {
    case .refreshTokenReused: .tokenReused
    case .deviceRevoked: .deviceRemoved
    default: .expired
    }
  }

  /// These routes take no idempotency key: their answers are secrets, which a server does not keep.
  private static func authCall(_ route: String, _ body: [String: String]) throws -> BackendCall {
    var call = BackendCall("POST", "/v1/auth/\(route)", access: .open)
    call.body = try JSON.encode(body)
    return call
  }

  private static func refreshCall(_ token: String) throws -> BackendCall {
    var call = try authCall("refresh", ["refresh_token": token])
    // The same token within 30 s, its successor not used yet, is a lost answer to the server.
    call.isHarmlessTwice = true
    call.timeout = .seconds(6)
    call.schedule.attemptLimit = 3
    // Others wait for the lock meanwhile, and not for ever.
    call.schedule.patience = .seconds(12)
    return call
  }

  // MARK: Signing in and out

  /// Signs in by one of the routes; whoever was signed in is signed out.
  package func signIn(_ route: String, _ body: [String: String]) async throws -> CurrentUser {
    // Not repeated when it may have arrived: the account, or another session, would be there already.
    let answer: TokenAnswer = try await http.send(Self.authCall(route, body)).json()
    let new = try answer.record(time)
    // The server has the session: a cancelled task does not leave it without an owner.
    let task = Task { try await self.replace(with: new) }
    let old = try await task.value
    if let old, old.sessionId != new.sessionId {
      Task { await self.tellServer(old) }
    }
    return new.user
  }

  private func replace(with new: SessionRecord) async throws -> SessionRecord? {
    try await lock.withLock {
      let old = try? Self.load(self.vault)
      do throws(StoreFault) { try self.store(new) } catch { throw BackendError.storeUnavailable(error) }
      self.adopt(new)
      return old
    }
  }

  /// Ends the session here, then on the server as far as it can be reached. Throws when the session cannot be
  /// removed from this device.
  package func signOut() async throws {
    let task = Task { try await self.removeSession() }
    if let old = try await task.value { await tellServer(old) }
  }

  private func removeSession() async throws -> SessionRecord? {
    try await lock.withLock {
      let old = (try? Self.load(self.vault)) ?? self.record
      do throws(StoreFault) { try self.vault.remove(Self.recordName) } catch {
        throw BackendError.storeUnavailable(error)
      }
      self.adopt(nil, .requested)
      return old
    }
  }

  private func tellServer(_ old: SessionRecord) async {
    var call = BackendCall("POST", "/v1/auth/sign-out", access: .session)
    call.timeout = .seconds(5)
    call.schedule.attemptLimit = 2
    do {
      do {
        _ = try await http.send(call, headers: [Self.authorization(old.accessToken)])
      } catch BackendError.server(let failure) where failure.status == 401 {
        let answer: TokenAnswer = try await http.send(Self.refreshCall(old.refreshToken)).json()
        _ = try await http.send(call, headers: [Self.authorization(answer.accessToken)])
      }
    } catch {
      // It ends by itself when its refresh token expires.
      SDKLog.note("the server could not be told that a session ended")
    }
  }

  static func authorization(_ token: String) -> TransportRequest.Field {
    .init("Authorization", "Bearer \(token)")
  }
}
