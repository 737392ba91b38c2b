import PalbeUnits

/// An address that checks with our password came from, and what we know of it.
struct LitePath: Sendable {
  let address: SocketAddress
  /// When the last check came that was not a copy.
  var heardAt: Instant
  /// When it last answered a check of ours: whoever is there wants our media.
  var provenAt: Instant?
  /// Bytes that may still be sent there while nobody has proven to be there.
  var allowance = 0
  /// The number of its last nomination in this generation; 0: it has none.
  var nomination: UInt64 = 0
  /// A check of ours under way.
  var check: LiteCheck?

  func isHeard(at now: Instant) -> Bool { now - heardAt <= ICELiteAgent.consentTimeout }

  func isProven(at now: Instant) -> Bool {
    provenAt.map { now - $0 <= ICELiteAgent.consentTimeout } ?? false
  }
}

/// A Binding request of ours, which only the peer can answer: it alone has the password and, at that address, the transaction id.
struct LiteCheck: Sendable {
  /// Transmissions after each check of the peer's, so that few are enough.
  static let transmissionLimit = 4
  /// Until the second transmission; each further time is twice as long.
  static let firstInterval = TimeDelta.milliseconds(250)

  /// The password that answers it.
  let generation: LiteGeneration.Number
  /// Drawn when it is sent.
  var id: STUNTransactionID?
  var transmissions = 0
  /// When it is sent again, or was not answered.
  var due: Instant

  init(_ generation: LiteGeneration.Number, due: Instant) {
    self.generation = generation
    self.due = due
  }

  mutating func repeatSchedule(from now: Instant) {
    transmissions = 0
    due = now
  }
}

/// Credentials of both sides that belong together; a restart begins another generation (RFC 8445 §9).
struct LiteGeneration: Sendable {
  enum Number: Sendable, BitwiseCopyable { case present, previous }

  let local: ICECredentials
  /// The peer's, once its description came.
  var remote: ICECredentials? {
    didSet { username = remote.map { Array("\($0.usernameFragment):\(local.usernameFragment)".utf8) } ?? [] }
  }
  /// Of our checks.
  private(set) var username: [UInt8] = []

  init(local: ICECredentials) { self.local = local }
}
