import PalbeAccountsCore
import PalbeBackendCore
import PalbeCrypto
import PalbeUnits
import PalbeWire
import Synchronization

/// The routes below /v1/auth.
extension RouteTable {
  /// - Parameter service: who serves them; nil describes them.
  static func accountRoutes(_ service: AccountService?) -> [Route] {
    func later(
      _ serve: @escaping @Sendable (AccountService, RouteInput, AccountReply) throws(AccountFailure) -> Void
    ) -> Route.Service {
      guard let service else { return .elsewhere }
      return .later { input, answer in
        let reply = AccountReply(service: service, answer)
        guard reply.isAdmitted else { return reply.send(.overloaded) }
        do throws(AccountFailure) { try serve(service, input, reply) } catch { reply.send(error) }
      }
    }
    return [
      Route(
        "POST", "/v1/auth/sign-up", "signUp", "Makes an account, and begins a session", access: .open,
        body: .json(.credentials), answer: .signedIn,
        codes: ["account_exists", "weak_password", "forbidden", "rate_limited", "unavailable"],
        service: later { (service, input, reply) in service.signIn(input, isNew: true, reply) }),
      Route(
        "POST", "/v1/auth/sign-in", "signIn", "Begins a session of an account", access: .open,
        body: .json(.credentials), answer: .signedIn,
        // The middle three when a first sign-in makes the account.
        codes: [
          "invalid_credentials", "account_exists", "weak_password", "forbidden", "rate_limited",
          "unavailable",
        ],
        service: later { (service, input, reply) in service.signIn(input, isNew: false, reply) }),
      Route(
        "POST", "/v1/auth/token", "signInWithToken", "Begins a session of whom an identity provider names",
        access: .open, body: .json(.identityToken), answer: .signedIn,
        codes: ["invalid_credentials", "forbidden", "rate_limited", "unavailable"],
        service: later { (service, input, reply) throws(AccountFailure) in
          try service.signInWithToken(input, reply)
        }),
      Route(
        "POST", "/v1/auth/refresh", "refresh", "Replaces a refresh token, and gives an access token",
        access: .open,
        body: .json(.refreshToken), answer: .signedIn,
        codes: ["session_expired", "refresh_token_reused", "device_revoked", "unavailable"],
        service: later { (service, input, reply) in service.refresh(input, reply) }),
      Route(
        "POST", "/v1/auth/sign-out", "signOut", "Ends the session", access: .session,
        service: later { (service, input, reply) throws(AccountFailure) in
          let session = try input.verified
          service.end(session.session, of: session.user, isOwn: true, reply)
        }),
      Route(
        "GET", "/v1/auth/sessions", "sessions", "The sessions of the user", access: .session,
        answer: .sessions,
        service: later { (service, input, reply) throws(AccountFailure) in
          service.list(try input.verified, reply)
        }),
      Route(
        "DELETE", "/v1/auth/sessions/{session}", "endSession", "Ends a session of the user", access: .session,
        codes: ["not_found"],
        service: later { (service, input, reply) throws(AccountFailure) in
          guard let id: SessionID = input.path.id("session") else { throw .sessionNotFound }
          service.end(id, of: try input.verified.user, isOwn: false, reply)
        }),
      Route(
        "POST", "/v1/auth/password", "changePassword", "Changes the password, and ends the other sessions",
        access: .session, body: .json(.passwordChange), codes: ["invalid_credentials", "weak_password"],
        service: later { (service, input, reply) throws(AccountFailure) in
          service.changePassword(of: try input.verified, input, reply)
        }),
      Route(
        "GET", "/v1/auth/keys", "signingKeys", "The keys that sign access tokens, as a JSON web key set",
        access: .open,
        answer: .keySet, codes: ["unavailable"],
        service: later { (service, _, reply) in reply.send(JSONText(bytes: service.keySet)) }),
    ]
  }
}

extension RouteInput {
  /// The session that asks; its route wants one.
  fileprivate var verified: VerifiedSession {
    get throws(AccountFailure) {
      guard let session else { throw .notSignedIn }
      return session
    }
  }

  fileprivate func secret(_ name: String) -> Secret {
    Secret(SymmetricKey(copying: Array((body.text(name) ?? "").utf8)))
  }
}

extension APIError {
  /// A refusal of the accounts.
  init(of failure: AccountFailure) {
    self.init(failure.code, failure.status, failure.message, retryAfter: failure.retryAfter)
    switch failure {
    case .invalidRequest(let field): details = [.init(name: "field", value: .text(field))]
    case .weakPassword(let reason): details = [.init(name: "reason", value: .text(reason.rawValue))]
    default: break
    }
  }
}

// MARK: Shapes

extension Shape.Record {
  private static let email = Shape.Field.required(
    "email", .text(upTo: 512), "an e-mail in ASCII; upper and lower case are one")

  fileprivate static let credentials = Shape.Record(
    "Credentials",
    [email, .required("password", .text(upTo: 4_096), "8 characters to 1,024 bytes")])

  fileprivate static let passwordChange = Shape.Record(
    "PasswordChange",
    [
      .required("current", .text(upTo: 4_096), "the password until now"),
      .required("new", .text(upTo: 4_096), "8 characters to 1,024 bytes"),
    ])

  fileprivate static let identityToken = Shape.Record(
    "IdentityToken", [.required("id_token", .text(upTo: 16_384), "a JSON web token of the provider's")])

  fileprivate static let refreshToken = Shape.Record(
    "RefreshToken", [.required("refresh_token", .text(upTo: 256), "as the last answer had it")])

  fileprivate static let signedIn = Shape.Record(
    "SignedIn",
    [
      .required("user_id", .user, "who it is"),
      .required("session_id", .id(SessionKind.prefix), "the session"),
      .required("access_token", .text(upTo: 2_048), "for the header Authorization"),
      .required("access_expires_in", .natural, "seconds that it is valid"),
      .required("refresh_token", .text(upTo: 256), "for the next access token; valid once"),
      .required("refresh_expires_in", .natural, "seconds that it is valid without use"),
      .required("is_new_user", .boolean, "whether the account was made by this"),
    ])

  fileprivate static let session = Shape.Record(
    "Session",
    [
      .required("id", .id(SessionKind.prefix), "the session"),
      .required("created_at_ms", .natural, "when it began"),
      .required("last_used_at_ms", .natural, "when it was last refreshed"),
      .optional("device_id", .device, "the device that was enrolled with it"),
      .optional("user_agent", .text(upTo: 200), "what the client called itself at sign-in"),
      .required("is_current", .boolean, "whether it is the one that asks"),
    ])

  fileprivate static let sessions = Shape.Record(
    "Sessions", [.required("sessions", .list(.object(.session), upTo: 64), "the last used first")])

  fileprivate static let signingKey = Shape.Record(
    "SigningKey",
    [
      .required("kty", .choice(["OKP"]), "RFC 8037"), .required("crv", .choice(["Ed25519"]), "the curve"),
      .required("x", .bytes(32...32), "the public key"), .required("kid", .text(upTo: 64), "its name"),
      .required("use", .choice(["sig"]), "for signatures"),
      .required("alg", .choice(["EdDSA"]), "the algorithm"),
    ])

  fileprivate static let keySet = Shape.Record(
    "KeySet", [.required("keys", .list(.object(.signingKey), upTo: 16), "oldest first")])
}

// MARK: Answers

/// One request about accounts that waits for its answer; only the first answer counts, and who lets go of it without one has
/// answered that there is too much to do.
final class AccountReply: Sendable {
  /// False when too many requests are being answered.
  let isAdmitted: Bool
  private let service: AccountService
  private let answer: Route.Answer
  private let isOpen = Atomic<Bool>(true)

  init(service: AccountService, _ answer: @escaping Route.Answer) {
    self.service = service
    self.answer = answer
    isAdmitted = service.begin()
  }

  deinit { send(.overloaded) }

  private func send(_ result: Result<JSONText?, APIError>) {
    guard isOpen.exchange(false, ordering: .relaxed) else { return }
    service.finished()
    answer(result)
  }

  func send(_ failure: AccountFailure) { send(.failure(APIError(of: failure))) }

  /// 204.
  func done() { send(.success(nil)) }

  func send(_ json: JSONText) { send(.success(json)) }

  func send(_ answer: SignedIn) {
    send(
      JSONWriter.object {
        $0.member("user_id", answer.user)
        $0.member("session_id", answer.session)
        $0.member("access_token", answer.accessToken)
        $0.member("access_expires_in", answer.accessLifetime.nanoseconds / 1_000_000_000)
        $0.member("refresh_token", answer.refreshToken)
        $0.member("refresh_expires_in", answer.refreshLifetime.nanoseconds / 1_000_000_000)
        $0.member("is_new_user", answer.isNewUser)
      })
  }

  func send(_ sessions: [SessionView]) {
    send(
      JSONWriter.object { json in
        json.member("sessions", each: sessions) { json, session in
          json.object { json in
            json.member("id", session.id)
            json.member("created_at_ms", session.createdAt)
            json.member("last_used_at_ms", session.lastUsedAt)
            if let device = session.device { json.member("device_id", device) }
            if !session.userAgent.isEmpty { json.member("user_agent", session.userAgent) }
            json.member("is_current", session.isCurrent)
          }
        }
      })
  }
}

// MARK: What each does

extension AccountService {
  fileprivate func signIn(_ input: RouteInput, isNew: Bool, _ reply: AccountReply) {
    let (email, password) = (input.body.text("email") ?? "", input.secret("password"))
    let (address, agent) = (input.address, input.userAgent)
    answer(reply) { [self] thread throws(AccountFailure) in
      let attempt =
        isNew
        ? try thread.accounts.beginSignUp(email: email, password: password, from: address, at: .now)
        : try thread.accounts.beginSignIn(email: email, password: password, from: address, at: .now)
      let isTaken = derive([(password, attempt.work)], reply) {
        [self] thread, derived throws(AccountFailure) in
        let accepted = try thread.accounts.accept(attempt, derived: derived[0].key, at: .now)
        registerAndOpen(accepted, agent, reply) { [self] in rehash(accepted, password) }
      }
      guard isTaken else {
        thread.accounts.withdraw(attempt)
        throw .overloaded
      }
    }
  }

  fileprivate func signInWithToken(_ input: RouteInput, _ reply: AccountReply) throws(AccountFailure) {
    guard let identities else { throw .notAllowed }
    let agent = input.userAgent
    let isTaken = identities.identity(
      of: input.body.text("id_token") ?? "", requestID: input.requestID
    ) { [self] result in
      answer(reply) { [self] thread throws(AccountFailure) in
        registerAndOpen(try thread.accounts.accept(try result.get(), at: .now), agent, reply)
      }
    }
    if !isTaken { throw .overloaded }
  }

  /// The delivery server first: what a client is told to be must be somebody there.
  private func registerAndOpen(
    _ accepted: AcceptedUser, _ agent: String, _ reply: AccountReply,
    then finish: @escaping @Sendable () -> Void = {}
  ) {
    register(accepted.user) { [self] failure in
      answer(reply) { thread throws(AccountFailure) in
        if let failure {
          if case .unavailable(let fault) = failure { return reply.send(.unavailable(fault)) }
          throw .unavailable(.failed)
        }
        let answer = try thread.accounts.open(accepted, userAgent: agent, at: .now)
        thread.settle()
        reply.send(answer)
        finish()
      }
    }
  }

  /// The hash at the cost that it should have, when there is time for it.
  private func rehash(_ accepted: AcceptedUser, _ password: Secret) {
    guard let work = accepted.rehash else { return }
    _ = passwords.submit { [self] in
      guard let derived = try? password.derived(by: work) else { return }
      perform { thread in
        thread.note { (accounts) throws(AccountFailure) in
          try accounts.setRehashed(accepted, derived: derived.key)
        }
      }
    }
  }

  fileprivate func refresh(_ input: RouteInput, _ reply: AccountReply) {
    let token = input.body.text("refresh_token") ?? ""
    answer(reply) { thread throws(AccountFailure) in
      let answer = try thread.accounts.refresh(token, at: .now)
      thread.settle()
      reply.send(answer)
    }
  }

  fileprivate func list(_ session: VerifiedSession, _ reply: AccountReply) {
    answer(reply) { thread throws(AccountFailure) in
      reply.send(try thread.accounts.sessions(of: session, at: .now))
    }
  }

  fileprivate func end(_ session: SessionID, of user: UserID, isOwn: Bool, _ reply: AccountReply) {
    answer(reply) { thread throws(AccountFailure) in
      do throws(AccountFailure) {
        try thread.accounts.endSession(session, of: user, at: .now)
      } catch {
        // Two that sign out at once have both signed out.
        guard isOwn, error == .sessionNotFound else { throw error }
      }
      thread.settle()
      reply.done()
    }
  }

  fileprivate func changePassword(of session: VerifiedSession, _ input: RouteInput, _ reply: AccountReply) {
    let (current, new) = (input.secret("current"), input.secret("new"))
    let address = input.address
    answer(reply) { [self] thread throws(AccountFailure) in
      let change = try thread.accounts.beginPasswordChange(
        of: session, current: current, new: new, from: address, at: .now)
      let works = [(current, change.currentWork), (new, change.newWork)]
      let isTaken = derive(works, reply) { thread, derived throws(AccountFailure) in
        try thread.accounts.finish(change, current: derived[0].key, new: derived[1].key, at: .now)
        thread.settle()
        reply.done()
      }
      guard isTaken else {
        thread.accounts.withdraw(change)
        throw .overloaded
      }
    }
  }

  // MARK: Threads

  /// Carries out `body` on the accounts' thread; what it throws is the answer.
  private func answer(
    _ reply: AccountReply, _ body: @escaping @Sendable (AccountThread) throws(AccountFailure) -> Void
  ) {
    perform { thread in
      do throws(AccountFailure) { try body(thread) } catch {
        thread.settle(after: error)
        reply.send(error)
      }
    }
  }

  /// Derives what passwords give, one after another on a thread for that, and goes on on the accounts' thread; false when too
  /// many wait.
  private func derive(
    _ works: [(password: Secret, work: PasswordWork)], _ reply: AccountReply,
    _ body: @escaping @Sendable (AccountThread, [Secret]) throws(AccountFailure) -> Void
  ) -> Bool {
    passwords.submit { [self] in
      do throws(CryptoError) {
        var derived: [Secret] = []
        for (password, work) in works { derived.append(try password.derived(by: work)) }
        let result = derived
        answer(reply) { thread throws(AccountFailure) in try body(thread, result) }
      } catch {
        reply.send(.overloaded)
      }
    }
  }
}
