import PalbeCrypto
import PalbeUnits

extension CallKeyRing {
  /// Installs a 32-byte call key; it is readable from now on, and sent under as `sending` says.
  ///
  /// The current key again is a no-op: no counter and no context starts over (hazard H2). Throws `wrongLength`,
  /// `retiredKey` for a key that was wiped, and `roomReused`; the keys stay as they were then.
  public mutating func install(_ key: Span<UInt8>, sending: SendSwitch, at now: Instant) throws(FrameKeyError)
  {
    advance(to: now)
    let new = try CallKey(key)
    if let newest = state.keys.last, CallKey.isEqual(newest.key, new) { return }
    let tag = new.ledgerTag()
    guard !state.retired.contains(where: { $0.tag == tag }) else { throw .retiredKey }
    try ledger.admit(tag: tag, identity: localIdentity.text, room: room, call: call)

    let held: HeldKey
    if let index = state.keys.firstIndex(where: { CallKey.isEqual($0.key, new) }) {
      // A replaced key comes back while it is still readable: its windows and refused contexts stay.
      held = state.keys.remove(at: index)
      held.serial = nextSerial()
      held.sending = sending
      held.wipeAt = .distantFuture
    } else {
      if let index = state.keys.firstIndex(where: { $0.key.keyIdentifier == new.keyIdentifier }) {
        // Two keys of one name: the newer has it (hazard H8; RFC 9605 §5.2 for equal low epoch bits).
        state.retire(state.keys.remove(at: index))
      }
      statistics.keyEpochs += 1
      held = HeldKey(key: new, tag: tag, serial: nextSerial(), sending: sending, sendAt: now)
    }
    place(held, at: now)
    releaseWaiting()
    updateDeadline()
  }

  /// Everybody has the newest key: send under it. Without a key that waits for this, nothing happens.
  public mutating func confirmSendKey(at now: Instant) {
    advance(to: now)
    if let newest = state.keys.last { send(under: newest) }
    updateDeadline()
  }

  /// Does what is due: switches to a key whose time has come, wipes replaced keys, closes superseded contexts, gives up
  /// on frames that waited too long. `seal` and `open` do it themselves; call it for the events' sake.
  public mutating func handleTimeout(at now: Instant) { advance(to: now) }

  private mutating func nextSerial() -> UInt64 {
    defer { state.nextSerial += 1 }
    return state.nextSerial
  }

  private mutating func place(_ held: HeldKey, at now: Instant) {
    let isFirst = state.sendKey == nil
    for key in state.keys where key.wipeAt == .distantFuture { key.wipeAt = now + configuration.retention }
    held.sendAt = isFirst || held.sending == .now ? now : now + configuration.sendDelay
    state.keys.append(held)
    while state.keys.count > configuration.replacedKeys + 1 {
      state.retire(state.keys.removeFirst())
    }
    if held.sendAt <= now {
      send(under: held)
    } else if let sendKey = state.sendKey, !state.keys.contains(where: { $0 === sendKey }) {
      // The key we sent under was pushed out: the newest that others have had for longer takes over.
      state.sendKey = nil
      send(under: state.keys.dropLast().last ?? held)
    }
  }

  /// Moves sending to a newer key, never to an older one.
  mutating func send(under key: HeldKey) {
    if let current = state.sendKey, current.serial >= key.serial { return }
    state.sendKey = key
    key.sendAt = .distantFuture
    state.report(.sendKeyChanged(keyIdentifier: key.key.keyIdentifier))
  }

  /// A frame authenticated under a key: through the plain seam that is enough to send under it.
  mutating func seen(_ key: HeldKey) {
    guard let sendKey = state.sendKey, key.serial > sendKey.serial else { return }
    guard key.sending == .automatic else { return }
    send(under: key)
    updateDeadline()
  }

  @inline(__always)
  mutating func advance(to now: Instant) {
    if now >= state.deadline { settle(at: now) }
  }

  private mutating func settle(at now: Instant) {
    if let due = state.keys.last(where: { $0.sendAt <= now }) { send(under: due) }
    for key in state.keys where key.wipeAt <= now && key !== state.sendKey { state.retire(key) }
    state.keys.removeAll { $0.wipeAt <= now && $0 !== state.sendKey }
    closeContexts(at: now)
    dropWaiting(at: now)
    updateDeadline()
  }

  mutating func updateDeadline() {
    var deadline = Instant.distantFuture
    for key in state.keys {
      if let sendKey = state.sendKey, key.serial > sendKey.serial { deadline = min(deadline, key.sendAt) }
      if key !== state.sendKey { deadline = min(deadline, key.wipeAt) }
    }
    for participant in state.participants.values {
      deadline = min(deadline, participant.deadline(waitingTime: configuration.waitingTime))
    }
    state.deadline = deadline
  }
}
