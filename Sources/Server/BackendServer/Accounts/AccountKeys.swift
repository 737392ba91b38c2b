import PalbeAccountsCore
import PalbeCrypto
import PalbeServerSettings
import PalbeUnits

/// The keys of `palbe-server`'s configuration that are about accounts, each once, in the order in which they are shown.
package enum AccountKeys {
  package static let signUp = Setting(
    "accounts.sign_up", "--sign-up", .boolean, default: true,
    "whether anybody may make an account with an e-mail and a password")
  package static let issuer = Setting(
    "accounts.issuer", "--issuer", .text("NAME", "a name"), default: "palbe", "iss of access tokens")
  package static let accessLifetime = Setting(
    "accounts.access_lifetime", "--access-lifetime", .duration(.seconds(60)...(.days(1))),
    default: .seconds(600),
    "an access token is valid for this long")
  package static let refreshLifetime = Setting(
    "accounts.refresh_lifetime", "--refresh-lifetime", .duration(.seconds(3_600)...(.days(3_650))),
    default: .days(60),
    "a session ends when it was not refreshed for this long")
  package static let keyLifetime = Setting(
    "accounts.key_lifetime", "--key-lifetime", .duration(.days(1)...(.days(3_650))), default: .days(30),
    "access tokens are signed by another key after this")
  package static let passwordCost = Setting(
    "accounts.password_cost", "--password-cost", .integer(10...20), default: 15,
    "hashing a password takes 2 to the power of this KiB; old hashes are renewed at sign-in")
  package static let passwordThreads = Setting(
    "accounts.password_threads", "--password-threads", .integer(1...64), default: 2,
    "passwords hashed at once")
  package static let providerIssuer = Setting(
    "identity.issuer", "--identity-issuer", .optional(.text("NAME", "iss of its tokens")), default: nil,
    words: "none",
    "an identity provider whose tokens sign in; with identity.audiences and identity.keys")
  package static let providerAudiences = Setting(
    "identity.audiences", "--identity-audience", .list("NAME", "a list of names"), default: [], words: "none",
    "of which aud of its tokens must name one")
  package static let providerKeys = Setting(
    "identity.keys", "--identity-keys", .optional(.text("PLACE", "a path or an https address")), default: nil,
    words: "none", "its JSON web key set: a file, or an https address")
  package static let providerAuthorities = Setting(
    "identity.authorities", "--identity-authorities", .optional(.text("FILE", "a path")), default: nil,
    words: "the system's", "certificate authorities in PEM that its address is trusted by")

  /// All of them.
  package static let all: [any AnySetting] = [
    signUp, issuer, accessLifetime, refreshLifetime, keyLifetime, passwordCost, passwordThreads,
    providerIssuer,
    providerAudiences, providerKeys, providerAuthorities,
  ]
}

extension AccountSettings {
  /// As the configuration has them.
  /// - Parameter isDevelopment: whether a first sign-in makes the account.
  package init(_ values: SettingValues, isDevelopment: Bool) throws(SettingsError) {
    self.init()
    rules.allowsSignUp = values[AccountKeys.signUp]
    rules.signInCreatesAccount = isDevelopment
    rules.issuer = values[AccountKeys.issuer]
    rules.accessLifetime = values[AccountKeys.accessLifetime]
    rules.refreshLifetime = values[AccountKeys.refreshLifetime]
    rules.keyLifetime = values[AccountKeys.keyLifetime]
    if let cost = Scrypt.Cost(n: 1 << values[AccountKeys.passwordCost], r: 8, p: 1) {
      rules.passwordCost = cost
    }
    passwordThreads = values[AccountKeys.passwordThreads]
    let issuer = values[AccountKeys.providerIssuer]
    let audiences = values[AccountKeys.providerAudiences]
    let place = values[AccountKeys.providerKeys]
    guard issuer != nil || place != nil || !audiences.isEmpty else { return }
    guard let issuer, let place, let provider = IdentityProvider(issuer: issuer, audiences: Set(audiences))
    else {
      throw SettingsError("'identity.issuer', 'identity.audiences' and 'identity.keys' go together")
    }
    guard let keys = KeySource(place, authorities: values[AccountKeys.providerAuthorities]) else {
      throw SettingsError("'identity.keys' is '\(place)'; expected a path or an https address")
    }
    providers = [ProviderSettings(provider: provider, keys: keys)]
  }
}
