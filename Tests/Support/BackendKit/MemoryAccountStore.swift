public import PalbeAccountsCore
public import PalbeBackendCore
import PalbeUnits

/// The reference store of accounts: dictionaries that a transaction copies.
public struct MemoryAccountStore: AccountStore {
  struct Tables {
    var accounts: [UserID: AccountRow] = [:]
    var identities: [ExternalIdentity: UserID] = [:]
    var sessions: [SessionID: SessionRow] = [:]
    var refused: [SessionID: Refusal] = [:]
    var lastDropped: WallTime?
  }

  var tables = Tables()
  private var atBegin: Tables?
  /// What goes wrong; shared with the test.
  public let faults = Faults()

  /// What goes wrong in a store.
  public final class Faults {
    /// Every transaction's end fails with this.
    public var commit: StoreFault?
  }

  /// An empty store.
  public init() {}

  public mutating func begin() throws(AccountFailure) {
    precondition(atBegin == nil, "two transactions at once")
    atBegin = tables
  }

  public mutating func commit() throws(AccountFailure) {
    if let fault = faults.commit { throw .unavailable(fault) }
    atBegin = nil
  }

  public mutating func rollBack() {
    if let before = atBegin { tables = before }
    atBegin = nil
  }

  public mutating func account(_ user: UserID) throws(AccountFailure) -> AccountRow? { tables.accounts[user] }

  public mutating func account(email: Email) throws(AccountFailure) -> AccountRow? {
    tables.accounts.values.first { $0.email == email }
  }

  public mutating func account(of identity: ExternalIdentity) throws(AccountFailure) -> AccountRow? {
    tables.identities[identity].flatMap { tables.accounts[$0] }
  }

  public mutating func insert(
    _ account: AccountRow, of identity: ExternalIdentity?
  ) throws(AccountFailure) {
    precondition(tables.accounts[account.user] == nil)
    tables.accounts[account.user] = account
    if let identity { tables.identities[identity] = account.user }
  }

  public mutating func setPassword(_ password: PasswordRecord, of user: UserID) throws(AccountFailure) {
    tables.accounts[user]?.password = password
  }

  public mutating func session(_ id: SessionID) throws(AccountFailure) -> SessionRow? { tables.sessions[id] }

  public mutating func sessions(of user: UserID) throws(AccountFailure) -> [SessionRow] {
    tables.sessions.values.filter { $0.user == user }.sorted { $0.id < $1.id }
  }

  public mutating func sessions(of device: DeviceID) throws(AccountFailure) -> [SessionRow] {
    tables.sessions.values.filter { $0.device == device }.sorted { $0.id < $1.id }
  }

  public mutating func put(_ session: SessionRow) throws(AccountFailure) {
    tables.sessions[session.id] = session
  }

  public mutating func removeSession(_ id: SessionID) throws(AccountFailure) { tables.sessions[id] = nil }

  public mutating func sessions(
    expiredAt time: WallTime, limit: Int
  ) throws(AccountFailure) -> [SessionID] {
    tables.sessions.values.filter { $0.expiresAt <= time }
      .sorted { ($0.expiresAt, $0.id) < ($1.expiresAt, $1.id) }.prefix(limit).map(\.id)
  }

  public mutating func refuse(_ session: SessionID, _ refusal: Refusal) throws(AccountFailure) {
    tables.refused[session] = refusal
  }

  public mutating func refusal(of session: SessionID) throws(AccountFailure) -> Refusal? {
    tables.refused[session]
  }

  public mutating func refused() throws(AccountFailure) -> [SessionID: Refusal] { tables.refused }

  public mutating func dropRefused(before time: WallTime) throws(AccountFailure) {
    let over = tables.refused.values.map(\.until).filter { $0 <= time }
    tables.lastDropped = (over + [tables.lastDropped].compactMap { $0 }).max()
    tables.refused = tables.refused.filter { $0.value.until > time }
  }

  public mutating func lastDropped() throws(AccountFailure) -> WallTime? { tables.lastDropped }
}
