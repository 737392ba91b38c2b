import PalbeAccountsCore
import PalbeEventLoop
import PalbeServerObservation
import PalbeUnits
import PalbeWebTokens
import Synchronization

/// An identity provider, and where its keys are.
package struct ProviderSettings: Hashable, Sendable {
  /// Whose tokens count.
  package var provider: IdentityProvider
  /// Its keys.
  package var keys: KeySource

  /// A provider.
  package init(provider: IdentityProvider, keys: KeySource) {
    self.provider = provider
    self.keys = keys
  }

  /// Refuses a file that holds no key set. An address that is down may be there later.
  fileprivate func checkFile() throws(KeyFileProblem) {
    guard case .file(let path) = keys else { return }
    do throws(KeySource.Failure) { _ = try keys.load { false } } catch {
      throw KeyFileProblem(
        description: "cannot use the keys of '\(provider.issuer)' in '\(path)': \(error.reason)")
    }
  }
}

/// Why a server does not start with a provider, in words for a person.
package struct KeyFileProblem: Error, Hashable, CustomStringConvertible {
  package let description: String
}

extension AccountSettings {
  /// Refuses a provider whose file holds no key set.
  package func checkKeyFiles() throws(KeyFileProblem) {
    for provider in providers { try provider.checkFile() }
  }
}

extension TokenError {
  /// For an operator.
  fileprivate var words: String {
    switch self {
    case .malformed: "not a signed JSON web token in its compact form"
    case .wrongAlgorithm: "signed by an algorithm that is not taken"
    case .unknownKey: "no key of the provider's key set has its kid and algorithm"
    case .badSignature: "its signature does not hold"
    case .expired: "exp is over"
    case .notYetValid: "nbf or iat is in the future"
    case .missingClaim: "a claim that must be there is not (exp, sub)"
    case .wrongIssuer: "iss is not identity.issuer"
    case .wrongAudience: "aud, or azp of several, is none of identity.audiences"
    }
  }
}

/// Verifies providers' tokens on a thread of its own, which may wait for their keys.
///
/// Keys are fetched at the start, again after an hour, and when a token names a key that is not among them; never more often than once in 30 s,
/// whoever asks. When they cannot be fetched the old ones stay, and where there are none yet the next token asks again.
final class IdentityService: Sendable {
  private struct Known {
    var keys: KeySet?
    var fetchedAt = Instant.zero
    var triedAt: Instant?
  }

  /// After this long they are fetched again.
  private static let lifetime = TimeDelta.seconds(3_600)

  private let providers: [ProviderSettings]
  private let interval: TimeDelta
  private let queue: WorkQueue
  private let log: ServerLog
  private let isStopping = Atomic<Bool>(false)
  private let budget = Mutex(LogBudget())
  /// By issuer; used by the one thread.
  private let known = Mutex<[String: Known]>([:])

  /// - Parameter interval: the shortest time between two fetches of one provider's keys.
  init(
    _ providers: [ProviderSettings], interval: TimeDelta = .seconds(30), log: ServerLog
  ) throws(SystemError) {
    self.providers = providers
    self.interval = interval
    self.log = log
    queue = try WorkQueue(name: "identity", threads: 1, capacity: 256)
    // An address that is wrong or down is told now, and not when the first person wants to sign in.
    _ = queue.submit { [self] in
      for settings in providers {
        guard fetch(settings, at: MonotonicClock.now(), if: { _ in true }) == nil else { continue }
        known.withLock { $0[settings.provider.issuer] = nil }
      }
    }
  }

  /// Says later, on another thread, whom a token is about; false when too many wait.
  func identity(
    of token: String, requestID: String = "",
    answer: @escaping @Sendable (Result<ExternalIdentity, AccountFailure>) -> Void
  ) -> Bool {
    queue.submit { [self] in
      do throws(AccountFailure) {
        answer(.success(try identity(of: token, requestID, MonotonicClock.now(), WallClock.unixSeconds)))
      } catch {
        answer(.failure(error))
      }
    }
  }

  func stop() {
    isStopping.store(true, ordering: .relaxed)
    queue.stop()
  }

  private func identity(
    of text: String, _ requestID: String, _ instant: Instant, _ seconds: Int64
  ) throws(AccountFailure) -> ExternalIdentity {
    let token: SignedToken
    var issuer: String?
    /// Tells the operator what the client is not told, and never the token.
    func refuse(_ error: TokenError) -> AccountFailure {
      if budget.withLock({ $0.take(at: instant) }) != .suppress {
        log.write(
          .info, "identity provider's token refused",
          [("reason", error.words), ("issuer", issuer ?? "none"), ("request", requestID)])
      }
      return .invalidCredentials
    }
    do throws(TokenError) {
      token = try SignedToken(text)
      // Believed only to find the keys by which it is then verified.
      issuer = try TokenClaims(token.payload).issuer
    } catch { throw refuse(error) }
    guard let settings = providers.first(where: { $0.provider.issuer == issuer }) else {
      throw refuse(.wrongIssuer)
    }
    var keys = fetch(settings, at: instant) { $0.keys == nil || instant - $0.fetchedAt >= Self.lifetime }
    for attempt in 0..<2 {
      guard let found = keys else { throw .providerUnavailable }
      do throws(TokenError) {
        return try settings.provider.identity(of: token, keys: found, now: seconds)
      } catch {
        guard error == .unknownKey, attempt == 0 else { throw refuse(error) }
        keys = fetch(settings, at: instant) { _ in true }
      }
    }
    throw .invalidCredentials
  }

  /// The keys that there are, fetched again if they should be and may be.
  private func fetch(_ settings: ProviderSettings, at now: Instant, if isWanted: (Known) -> Bool) -> KeySet? {
    let issuer = settings.provider.issuer
    var state = known.withLock { $0[issuer] } ?? Known()
    guard isWanted(state), state.triedAt.map({ now - $0 >= interval }) ?? true else { return state.keys }
    state.triedAt = now
    do throws(KeySource.Failure) {
      let keys = try settings.keys.load { [self] in isStopping.load(ordering: .relaxed) }
      if keys.keys.isEmpty {
        log.write(
          .warning, "identity provider's key set has no usable key",
          [("issuer", issuer), ("usable", "RSA from 2048 bits, EC P-256 or Ed25519, for signing")])
      }
      state.keys = keys
      state.fetchedAt = now
    } catch {
      log.write(.warning, "identity provider's keys not had", [("issuer", issuer), ("reason", error.reason)])
    }
    known.withLock { $0[issuer] = state }
    return state.keys
  }
}
