public import PalbeBackendCore
import PalbeCrypto
import PalbeUnits

/// What a transaction that may end the session has to say.
private enum RefreshOutcome {
  case answered(SessionRow, RefreshToken)
  case refused(AccountFailure)
}

extension Accounts {
  /// The next access token and the next refresh token, in exchange for one.
  ///
  /// - The current token is replaced.
  /// - The one before it is answered with the current one again, for 30 s and as long as that was not used: the answer was lost,
  ///   or two asked at once.
  /// - Any older one of the session is in two hands: the session ends.
  ///
  /// - Throws: `sessionExpired`, `refreshTokenReused`, `deviceRevoked`.
  public mutating func refresh(_ text: String, at now: ServerTime) throws(AccountFailure) -> SignedIn {
    guard let presented = RefreshToken(text) else { throw .sessionExpired }
    let time = time(now)
    let hash = presented.hash
    let secret = random.bytes(32)
    let outcome = try transact { (accounts) throws(AccountFailure) -> RefreshOutcome in
      guard var row = try accounts.store.session(presented.session) else {
        let refusal = try accounts.store.refusal(of: presented.session)
        return .refused(refusal?.isDeviceRevoked == true ? .deviceRevoked : .sessionExpired)
      }
      guard row.expiresAt > time else {
        try accounts.end(row.id, at: now)
        return .refused(.sessionExpired)
      }
      if ConstantTime.equal(row.current.span, hash.span) {
        let next = accounts.token(row.id, row.generation + 1, secret)
        row.previous = SessionRow.Superseded(hash: hash, at: time, cover: presented.cover(secret))
        row.generation += 1
        row.current = next.hash
        row.lastUsedAt = now.wall
        row.expiresAt = time + accounts.rules.refreshLifetime
        try accounts.store.put(row)
        return .answered(row, next)
      }
      if let previous = row.previous, ConstantTime.equal(previous.hash.span, hash.span) {
        let next = accounts.token(row.id, row.generation, presented.cover(previous.cover))
        if time <= previous.at + accounts.rules.lostAnswerTime, next.hash == row.current {
          return .answered(row, next)
        }
      } else if !accounts.isMadeHere(presented) {
        return .refused(.sessionExpired)
      }
      try accounts.end(row.id, at: now)
      return .refused(.refreshTokenReused)
    }
    switch outcome {
    case .answered(let row, let token): return try answer(row, token, isNew: false, at: now)
    case .refused(let failure): throw failure
    }
  }

  /// The user's sessions, the one that was used last first.
  public mutating func sessions(of session: VerifiedSession, at now: ServerTime) throws(AccountFailure)
    -> [SessionView]
  {
    let time = time(now)
    return try transact { (accounts) throws(AccountFailure) in
      try accounts.store.sessions(of: session.user).filter { $0.expiresAt > time }
        .sorted { $1.isOlder(than: $0) }
        .map {
          SessionView(
            id: $0.id, createdAt: $0.createdAt, lastUsedAt: $0.lastUsedAt, device: $0.device,
            userAgent: $0.userAgent, isCurrent: $0.id == session.session)
        }
    }
  }

  /// Ends one of the user's sessions.
  /// - Throws: `sessionNotFound`.
  public mutating func endSession(
    _ id: SessionID, of user: UserID, at now: ServerTime
  ) throws(AccountFailure) {
    try transact { (accounts) throws(AccountFailure) in
      guard let row = try accounts.store.session(id), row.user == user else { throw .sessionNotFound }
      try accounts.end(id, at: now)
    }
  }

  /// Ends all sessions of a user but one, as after a theft of a device.
  public mutating func endSessions(
    of user: UserID, except kept: SessionID? = nil, at now: ServerTime
  ) throws(AccountFailure) {
    try transact { (accounts) throws(AccountFailure) in
      for row in try accounts.store.sessions(of: user) where row.id != kept {
        try accounts.end(row.id, at: now)
      }
    }
  }

  /// A device was enrolled with a session.
  public mutating func setDevice(_ device: DeviceID, of session: SessionID) throws(AccountFailure) {
    try transact { (accounts) throws(AccountFailure) in
      guard var row = try accounts.store.session(session), row.device != device else { return }
      row.device = device
      try accounts.store.put(row)
    }
  }

  /// A device is no longer its user's: its sessions end.
  public mutating func endSessions(of device: DeviceID, at now: ServerTime) throws(AccountFailure) {
    try transact { (accounts) throws(AccountFailure) in
      for row in try accounts.store.sessions(of: device) {
        try accounts.end(row.id, at: now, isDeviceRevoked: true)
      }
    }
  }
}
