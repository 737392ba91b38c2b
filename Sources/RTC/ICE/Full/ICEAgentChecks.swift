import PalbeUnits

/// Connectivity checks going out (RFC 8445 §6.1.4 and §14).
extension ICEAgent {
  /// The priority that a peer-reflexive candidate found by a check on `path` would have (RFC 8445 §7.1.1).
  private func checkPriority(_ path: ICEPath) -> UInt32 {
    let best = locals.first { $0.serves(path) }?.candidate.priority ?? 0
    let kind = ICECandidate.Kind.peerReflexive
    return best & 0xff_ffff | (path.isStream ? kind.streamTypePreference : kind.typePreference) << 24
  }

  func makeRequest(
    _ id: STUNTransactionID, on path: ICEPath, local: ICECredentials, remote: ICECredentials, nominates: Bool
  ) -> [UInt8] {
    var request = STUNMessage(.request, transactionID: id)
    request.username = Array("\(remote.usernameFragment):\(local.usernameFragment)".utf8)
    request.priority = checkPriority(path)
    request.role =
      role == .controlling ? .controlling(tieBreaker: tieBreaker) : .controlled(tieBreaker: tieBreaker)
    request.useCandidate = nominates && role == .controlling
    return request.encoded(integrityKey: remote.integrityKey)
  }

  mutating func sendCheck(_ path: ICEPath, nominates: Bool, at now: Instant) {
    guard let remote else { return }
    let id = STUNTransactionID(using: &random)
    let bytes = makeRequest(id, on: path, local: local, remote: remote, nominates: nominates)
    // With many pairs the retransmissions would crowd out new checks (RFC 8445 §14.3).
    var interval = max(configuration.firstRetransmit, configuration.pacing * checklist.unfinishedCount)
    // TCP repeats by itself (RFC 8489 §6.2.2).
    if path.isStream { interval = configuration.streamCheckTimeout }
    checks.append(
      ICECheck(
        id: id, path: path, role: role, nominates: nominates, bytes: bytes,
        transmissions: path.isStream ? configuration.transmissions : 1, interval: interval,
        due: now + interval))
    transmit(bytes, on: path)
  }

  /// Sends the next check if Ta has passed since the last one.
  mutating func sendChecks(at now: Instant) {
    guard isChecking, now >= nextPace, let path = checklist.next(streams: opensStreams(at: now)) else {
      return
    }
    for index in checks.indices where checks[index].path == path && !checks[index].nominates {
      checks[index].isReplaced = true
    }
    dropReplacedChecks()
    sendCheck(path, nominates: false, at: now)
    nextPace = now + configuration.pacing
  }

  /// Connections cost both ends more than datagrams: they wait until UDP has had its chance, and are not opened beside a
  /// pair that is nominated.
  private var opensStreamsFrom: Instant? {
    guard let streamStart, !hasNominated else { return nil }
    return checklist.hasDatagrams ? streamStart : .zero
  }

  /// Whether connections may be opened by now.
  func opensStreams(at now: Instant) -> Bool { opensStreamsFrom.map { $0 <= now } ?? false }

  /// A pair of this generation is nominated.
  var hasNominated: Bool { consent.map { $0.isNominated && $0.local == local } ?? false }

  /// When a check may be sent next; nil: none waits.
  var nextCheck: Instant? {
    guard isChecking else { return nil }
    if checklist.hasWaiting(streams: false) || !checklist.triggered.isEmpty { return nextPace }
    guard checklist.hasWaiting(streams: true), let opensStreamsFrom else { return nil }
    return max(nextPace, opensStreamsFrom)
  }

  /// Replaced checks are only kept for late answers: not more than there are pairs.
  private mutating func dropReplacedChecks() {
    while checks.count(where: \.isReplaced) > ICEChecklist.limit,
      let oldest = checks.firstIndex(where: \.isReplaced)
    { checks.remove(at: oldest) }
  }

  /// Repeats what is due and gives up what was repeated often enough.
  mutating func retransmit(at now: Instant) {
    var failed = [ICEPath]()
    for index in checks.indices where !checks[index].isReplaced && checks[index].due <= now {
      if checks[index].transmissions >= configuration.transmissions {
        failed.append(checks[index].path)
        continue
      }
      checks[index].transmissions += 1
      checks[index].interval = min(checks[index].interval * 2, configuration.longestRetransmit)
      checks[index].due = now + checks[index].interval
      transmit(checks[index].bytes, on: checks[index].path)
    }
    for path in failed { fail(path) }
  }

  /// The pair does not work.
  mutating func fail(_ path: ICEPath) {
    checks.removeAll { $0.path == path }
    guard let index = checklist.index(of: path) else { return }
    checklist[index].state = .failed
    checklist[index].isNominated = false
  }

  /// The controlling agent nominates its best working pair, once (RFC 8445 §8.1.1).
  mutating func nominate(at now: Instant) {
    guard role == .controlling, isChecking, !isNominating, let best = checklist.best, !best.isNominated else {
      nominationDeadline = nil
      return
    }
    let mayImprove = checklist.pairs.contains { pair in
      (pair.state == .waiting || pair.state == .inProgress) && pair.priority(role) > best.priority(role)
    }
    if mayImprove {
      let wait = best.path.isStream ? configuration.streamNominationWait : configuration.nominationWait
      let deadline = nominationDeadline ?? now + wait
      nominationDeadline = deadline
      if now < deadline { return }
    }
    nominationDeadline = nil
    sendCheck(best.path, nominates: true, at: now)
  }
}
