import PalbeUnits
import PalbeWire

/// What arrives (RFC 8445 §7.2.5 and §7.3).
extension ICEAgent {
  /// Takes one datagram that is STUN by its first byte, from the socket `base`. Nil: it was used.
  @discardableResult
  public mutating func handle(
    _ datagram: Span<UInt8>, from remote: SocketAddress, base: Int, at now: Instant
  ) -> ICEIgnoreReason? {
    var message: STUNMessage
    do { message = try STUNMessage.parse(datagram) } catch { return .notSTUN(error) }
    message.mappedAddress?.transport = remote.transport
    guard message.method == STUNMessage.binding else { return .otherMethod(message.method) }
    let path = ICEPath(base: base, remote: remote)
    let reason: ICEIgnoreReason?
    switch message.messageClass {
    case .indication: reason = .indication
    case .request: reason = handleRequest(message, datagram, path)
    case .success, .failure: reason = handleResponse(message, datagram, path, at: now)
    }
    if reason == nil { advance(at: now) }
    return reason
  }

  /// Answers a check of the peer's. As in the lite agent, what does not carry our password gets no answer at all.
  private mutating func handleRequest(
    _ request: STUNMessage, _ datagram: Span<UInt8>, _ path: ICEPath
  ) -> ICEIgnoreReason? {
    let isCurrent = request.isFor(local)
    guard isCurrent || previousLocal.map(request.isFor) ?? false else { return .otherAgent }
    let key = (isCurrent ? local : previousLocal ?? local).integrityKey
    guard request.isAuthentic(in: datagram, key: key) else { return .unauthenticated }
    guard let base = locals.first(where: { $0.serves(path) }) else { return .unknownBase }

    guard request.notUnderstood.isEmpty else {
      transmit(request.failure(.unknownAttribute, key: key), on: path)
      return nil
    }
    guard let priority = request.priority else {
      transmit(request.failure(.badRequest, key: key), on: path)
      return nil
    }
    guard settleRole(request.role) else {
      transmit(request.failure(.roleConflict, key: key), on: path)
      return nil
    }
    transmit(request.success(from: path.remote, key: key), on: path)
    if isCurrent, state != .failed { learn(path, base, priority: priority, nominates: request.useCandidate) }
    return nil
  }

  /// Settles a role conflict by the tie-breakers (RFC 8445 §7.3.1.1); false: the peer must switch.
  private mutating func settleRole(_ claimed: STUNMessage.Role?) -> Bool {
    switch (role, claimed) {
    case (.controlling, .controlling(let theirs)):
      // A lite peer cannot control, so whoever claims to is mistaken.
      if isRemoteLite || tieBreaker >= theirs { return false }
      become(.controlled)
    case (.controlled, .controlled(let theirs)):
      if tieBreaker < theirs { return false }
      become(.controlling)
    default: break
    }
    return true
  }

  /// A peer's check shows that a path exists: pair it, check it back, and note a nomination (RFC 8445 §7.3.1.3 to 5).
  private mutating func learn(_ path: ICEPath, _ base: Local, priority: UInt32, nominates: Bool) {
    if !remotes.contains(where: { $0.address == path.remote }) {
      guard remotes.count < Self.remoteLimit else { return }
      var found = ICECandidate(.peerReflexive, path.remote)
      found.priority = priority
      remotes.append(found)
    }
    if checklist.index(of: path) == nil, let known = remotes.first(where: { $0.address == path.remote }) {
      pair(base, known)
    }
    guard let index = checklist.index(of: path) else { return }
    let isNomination = nominates && role == .controlled
    if checklist[index].state == .succeeded {
      if isNomination { checklist[index].isNominated = true }
    } else {
      if isNomination { checklist[index].nominateOnSuccess = true }
      // A lite peer only follows checks of ours, one of which is under way here.
      if !isRemoteLite { checklist.trigger(path) }
    }
  }

  private mutating func handleResponse(
    _ response: STUNMessage, _ datagram: Span<UInt8>, _ path: ICEPath, at now: Instant
  ) -> ICEIgnoreReason? {
    if let index = checks.firstIndex(where: { $0.id == response.transactionID }), let remote {
      guard response.isAuthentic(in: datagram, key: remote.integrityKey) else { return .unauthenticated }
      finish(checks.remove(at: index), response, path)
      return nil
    }
    return handleConsentResponse(response, datagram, path, at: now)
  }

  /// Ends one of our checks by its answer.
  private mutating func finish(_ check: ICECheck, _ response: STUNMessage, _ path: ICEPath) {
    if response.messageClass == .failure, response.errorCode?.code == 487 {
      if check.role == role, !isRemoteLite {
        become(role == .controlling ? .controlled : .controlling)
        // So that two agents that switch at once do not meet in the same conflict again (RFC 8445 §7.2.5.1).
        tieBreaker = random.next()
      }
      checklist.trigger(check.path)
      return
    }
    // An answer from elsewhere means that the path is not symmetric (RFC 8445 §7.2.5.2.1).
    guard response.messageClass == .success, path == check.path, let mapped = response.mappedAddress,
      response.notUnderstood.isEmpty
    else { return fail(check.path) }
    guard let index = checklist.index(of: check.path) else { return }
    checklist[index].state = .succeeded
    checklist[index].mapped = mapped
    if role == .controlling ? check.nominates : checklist[index].nominateOnSuccess {
      checklist[index].isNominated = true
    }
    checks.removeAll { $0.path == check.path && !$0.nominates }
  }
}
