import PalbeAccountsCore
import PalbeCommandLine
import PalbeCrypto
import PalbeServerSettings
import PalbeUnits
import Testing

@testable import PalbeBackendServer

@Suite("Accounts: configuration")
struct AccountKeysTests {
  private let schema = SettingsSchema(program: "palbe-server", keys: AccountKeys.all)

  private func settings(_ environment: [String: String] = [:]) throws -> AccountSettings {
    let options = try Command(name: "serve", summary: "", options: schema.options, examples: []).parse([])
    let values = try SettingValues(schema, options: options, environment: environment) {
      _ throws(SettingsError) in []
    }
    return try AccountSettings(values, isDevelopment: false)
  }

  @Test("The defaults are those of the rules")
  func defaults() throws {
    let (found, rules) = (try settings(), AccountRules())
    #expect(found.rules.issuer == rules.issuer && found.rules.accessLifetime == rules.accessLifetime)
    #expect(
      found.rules.refreshLifetime == rules.refreshLifetime && found.rules.keyLifetime == rules.keyLifetime)
    #expect(found.rules.passwordCost == rules.passwordCost && found.passwordThreads == 2)
    #expect(found.rules.allowsSignUp && !found.rules.signInCreatesAccount && found.providers.isEmpty)
  }

  @Test("Issue 5, 2: an identity provider has issuer, audiences and keys, or is none")
  func providers() throws {
    var variables = [
      "PALBE_SERVER_IDENTITY_ISSUER": "https://id.example", "PALBE_SERVER_IDENTITY_AUDIENCES": "palbe,other",
      "PALBE_SERVER_IDENTITY_KEYS": "https://id.example/keys", "PALBE_SERVER_ACCOUNTS_SIGN_UP": "false",
      "PALBE_SERVER_ACCOUNTS_PASSWORD_COST": "16", "PALBE_SERVER_ACCOUNTS_ACCESS_LIFETIME": "5m",
    ]
    let found = try settings(variables)
    let provider = IdentityProvider(issuer: "https://id.example", audiences: ["palbe", "other"])
    #expect(
      found.providers.map(\.provider) == [provider]
        && found.providers[0].keys == .url("https://id.example/keys"))
    #expect(!found.rules.allowsSignUp && found.rules.accessLifetime == .seconds(300))
    #expect(found.rules.passwordCost.memoryByteCount > 64 << 20)
    for (name, value) in [("IDENTITY_KEYS", "http://id.example/keys"), ("ACCOUNTS_PASSWORD_COST", "30")] {
      var wrong = variables
      wrong["PALBE_SERVER_" + name] = value
      #expect(throws: SettingsError.self) { try settings(wrong) }
    }
    for name in ["ISSUER", "AUDIENCES", "KEYS"] {
      var wrong = variables
      wrong["PALBE_SERVER_IDENTITY_" + name] = nil
      #expect(throws: SettingsError.self) { try settings(wrong) }
    }
    variables = variables.filter { !$0.key.contains("IDENTITY") }
    #expect(try settings(variables).providers.isEmpty)
  }
}
