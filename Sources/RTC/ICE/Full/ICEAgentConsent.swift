import PalbeUnits
import PalbeWire

/// The path in use: choosing it, keeping its consent fresh (RFC 7675), losing it.
extension ICEAgent {
  /// Four to six seconds for an interval of five, so that many agents do not beat in step.
  private mutating func consentDelay() -> TimeDelta {
    let percent = 80 + Int(random.next() % 41)
    return configuration.consentInterval * percent / 100
  }

  /// Sends a consent check when one is due.
  mutating func checkConsent(at now: Instant) {
    guard var consent, consent.nextCheck <= now else { return }
    let id = STUNTransactionID(using: &random)
    if consent.outstanding.count == ICEConsent.outstandingLimit { consent.outstanding.removeFirst() }
    consent.outstanding.append(id)
    consent.nextCheck = now + consentDelay()
    self.consent = consent
    let path = consent.pair.path
    let bytes = makeRequest(
      id, on: path, local: consent.local, remote: consent.remote, nominates: consent.isNominated)
    transmit(bytes, on: path)
  }

  mutating func handleConsentResponse(
    _ response: STUNMessage, _ datagram: Span<UInt8>, _ path: ICEPath, at now: Instant
  ) -> ICEIgnoreReason? {
    guard var consent, let index = consent.outstanding.firstIndex(of: response.transactionID) else {
      return .unknownTransaction
    }
    guard response.isAuthentic(in: datagram, key: consent.remote.integrityKey) else {
      return .unauthenticated
    }
    consent.outstanding.remove(at: index)
    if path == consent.pair.path, response.messageClass == .success {
      consent.lastResponse = max(consent.lastResponse, now)
      if let mapped = response.mappedAddress, mapped != consent.pair.local {
        consent.pair.local = mapped
        self.consent = consent
        emit(.selectedPairChanged(consent.pair))
      }
    }
    self.consent = consent
    return nil
  }

  /// The TCP connection to `remote` has ended, or was never made. A check on it has failed. The selected pair is checked
  /// again, soon, which opens a new connection: who moved from one network to another goes on there.
  public mutating func disconnected(from remote: SocketAddress, base: Int, at now: Instant) {
    let path = ICEPath(base: base, remote: remote)
    if path == consent?.pair.path, let nextRetry = consent?.nextRetry {
      // A nomination under way is repeated with it.
      checks.removeAll { $0.path == path }
      let next = max(now, nextRetry)
      consent?.nextCheck = next
      consent?.nextRetry = next + configuration.streamRetry
      consent?.outstanding = []
    } else {
      fail(path)
    }
    advance(at: now)
  }

  /// Draws the conclusions: which pair media uses, and the state.
  mutating func settle(at now: Instant) {
    select(at: now)
    if let consent {
      let silence = now - consent.lastResponse
      if silence >= configuration.consentTimeout {
        lose(consent)
      } else if silence >= configuration.disconnectAfter {
        move(to: .disconnected)
      } else {
        move(to: consent.isNominated ? .completed : .connected)
      }
    }
    let isOver = checkDeadline.map { $0 <= now } ?? false
    let isExhausted = hasAllRemoteCandidates && checklist.unfinishedCount == 0 && !locals.isEmpty
    if checkDeadline != nil, isOver || isExhausted {
      // No pair of this generation works. Where an earlier one has consent, the call goes on there.
      dropChecklist()
      if consent == nil { move(to: .failed) }
    } else if consent == nil, checkDeadline != nil, !checklist.pairs.isEmpty {
      move(to: .checking)
    }
  }

  private mutating func dropChecklist() {
    checklist = ICEChecklist()
    checks = []
    checkDeadline = nil
  }

  /// Takes the best working pair into use. While a pair of an earlier generation, or a nominated one, still has
  /// consent, only a nominated pair replaces it.
  private mutating func select(at now: Instant) {
    guard let remote, let best = checklist.best else { return }
    let pair = ICESelectedPair(
      base: best.path.base, local: best.mapped ?? best.local, remote: best.path.remote)
    if let consent {
      if consent.local == local, consent.pair.base == pair.base, consent.pair.remote == pair.remote {
        guard best.isNominated else { return }
        self.consent?.isNominated = true
        previousLocal = nil
        return
      }
      let isReplaceable = consent.local == local && !consent.isNominated
      guard best.isNominated || isReplaceable else { return }
    }
    checkDeadline = nil
    let delay = consentDelay()
    let isMoved = consent?.pair != pair
    consent = ICEConsent(
      local: local, remote: remote, pair: pair, isNominated: best.isNominated, lastResponse: now,
      nextCheck: now + delay)
    if best.isNominated { previousLocal = nil }
    if isMoved { emit(.selectedPairChanged(pair)) }
  }

  /// Consent is gone: nothing may be sent to the peer any more. Pairs of a restart under way go on.
  private mutating func lose(_ lost: ICEConsent) {
    consent = nil
    emit(.selectedPairChanged(nil))
    guard lost.local == local || remote == nil else { return move(to: .checking) }
    dropChecklist()
    move(to: .failed)
  }
}
