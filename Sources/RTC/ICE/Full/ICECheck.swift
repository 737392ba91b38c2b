import PalbeUnits

/// One Binding request of ours under way.
struct ICECheck: Sendable {
  let id: STUNTransactionID
  let path: ICEPath
  /// The role that the request claims; a 487 about another one is old news.
  let role: ICERole
  /// Carries USE-CANDIDATE.
  let nominates: Bool
  let bytes: [UInt8]
  var transmissions = 1
  var interval: TimeDelta
  /// When it is sent again or, after the last transmission, has failed.
  var due: Instant
  /// A triggered check replaced it: an answer still counts, it is not sent again (RFC 8445 §7.3.1.4).
  var isReplaced = false
}

/// The consent of the peer to what we send on the selected path (RFC 7675).
///
/// It holds the credentials under which the path was selected, so that it outlives a restart until a path of the new
/// generation is selected. Checks are not retransmitted: each is a new transaction, and the answer to any counts.
struct ICEConsent: Sendable {
  let local: ICECredentials
  let remote: ICECredentials
  var pair: ICESelectedPair
  var isNominated: Bool
  var lastResponse: Instant
  var nextCheck: Instant
  /// When a broken connection may be tried again.
  var nextRetry = Instant.zero
  /// Transactions that may still be answered, oldest first.
  var outstanding: [STUNTransactionID] = []

  /// 30 s hold at most eight checks 4 s apart.
  static let outstandingLimit = 8
}
