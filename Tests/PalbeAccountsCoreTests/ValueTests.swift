import PalbeAccountsCore
import PalbeBackendCore
import PalbeCrypto
import PalbeUnits
import PalbeWebTokens
import PalbeWire
import Testing

@Suite("Accounts: e-mails, passwords, tokens")
struct ValueTests {
  @Test(
    "RFC 5321 §4.1.2: one form of each address",
    arguments: [
      ("Anna@Example.ORG", "anna@example.org"), (" a.b+c@d.e\t", "a.b+c@d.e"),
      ("anna@localhost", "anna@localhost"),
      ("o'neil!#$%&*+-/=?^_`{|}~@x--y.de", "o'neil!#$%&*+-/=?^_`{|}~@x--y.de"),
    ])
  func emails(_ text: String, _ expected: String) { #expect(Email(text)?.text == expected) }

  @Test(
    "RFC 5321 §4.5.3.1: what is no address, or too long",
    arguments: [
      "", "a", "@", "a@", "@b", "a@b@c", ".a@b", "a.@b", "a..b@c", "a@.b", "a@b.", "a@b..c", "a@-b", "a@b-",
      "a b@c",
      "a@b c", "a@b_c", "\"a\"@b", "a@[1.2.3.4]", "ä@b.de", "a@ä.de", "a\0@b", "a\n@b", "a@b\r\nBcc: c@d",
      String(repeating: "a", count: 65) + "@b", "a@" + String(repeating: "b", count: 64),
      "a@" + Array(repeating: String(repeating: "b", count: 60), count: 5).joined(separator: "."),
      String(repeating: " ", count: 600) + "a@b",
    ])
  func noEmails(_ text: String) { #expect(Email(text) == nil) }

  private func weakness(_ password: String) -> WeakPassword? {
    let bytes = Array(password.utf8)
    do throws(WeakPassword) { try PasswordRules.check(bytes.span, for: Email("anna.berg@example.org")) } catch
    {
      return error
    }
    return nil
  }

  @Test("Issue 5, 2: 8 characters to 1,024 bytes, and not what is tried first")
  func passwords() {
    for good in [
      "correct horse", "hunter22x", "ÄÖÜäöüßß", "abcd efgh", "passwordmanager rocks", "testament",
      "tr0ub4dor",
      String(repeating: "ab cd", count: 204),
    ] {
      #expect(weakness(good) == nil, "\(good)")
    }
    #expect(weakness("") == .tooShort && weakness("1234567") == .tooShort)
    #expect(weakness("👨‍👩‍👧👨‍👩‍👧") == .tooShort)
    #expect(weakness(String(repeating: "ab cd", count: 205)) == .tooLong)
    #expect(weakness("Anna.Berg@example.org") == .isEmail && weakness("ANNA.BERG") == .isEmail)
    for bad in [
      "12345678", "87654321", "aaaaaaaa", "abababab", "qwertyuiop", "Password", "PASSWORD1!", "letmein2024",
      "admin123",
      "passw0rd", "test1234", "1q2w3e4r", "zyxwvuts",
    ] {
      #expect(weakness(bad) == .guessable, "\(bad)")
    }
  }

  @Test("API: a device's token is valid for its user and device, under its key, and no other")
  func deviceTokens() {
    var random = RandomSource(seed: 3)
    let time = WallTime(microseconds: 1_800_000_000_000_000)
    let (anna, ben) = (UserID(at: time, using: &random), UserID(at: time, using: &random))
    let device = DeviceID(at: time, using: &random)
    let tokens = DeviceTokens(key: SymmetricKey(byteCount: 32, using: &random))
    let others = DeviceTokens(key: SymmetricKey(byteCount: 32, using: &random))
    let token = tokens.token(user: anna, device: device)
    #expect(token.hasPrefix(device.text + "."))
    #expect(tokens.device(token, of: anna) == device)
    #expect(tokens.device(token, of: ben) == nil && others.device(token, of: anna) == nil)
    for count in 0..<token.utf8.count { #expect(tokens.device(String(token.prefix(count)), of: anna) == nil) }
    #expect(tokens.device(token + "A", of: anna) == nil && tokens.device(token + "=", of: anna) == nil)
    for index in token.indices where token[index] != "A" {
      var changed = token
      changed.replaceSubrange(index...index, with: "A")
      #expect(tokens.device(changed, of: anna) == nil)
    }
  }

  @Test("Signing keys come back from their bytes; no other bytes are keys")
  func serializedKeys() throws {
    var random = RandomSource(seed: 4)
    let time = WallTime(microseconds: 1_800_000_000_000_000)
    var rules = AccountRules()
    rules.keyLead = .zero
    let first = SigningKeys(at: time, using: &random)
    let keys = try #require(
      first.rotated(at: time + rules.keyLifetime, rules: rules, using: &random))
    let bytes = [UInt8](keys.serialized.span)
    let again = SigningKeys(serialized: bytes.span)
    #expect(again?.keySet == keys.keySet)
    #expect(keys.keySet.keys.count == 2 && keys.keySet.keys[0] == first.keySet.keys[0])
    func isRefused(_ bytes: [UInt8]) -> Bool { SigningKeys(serialized: bytes.span) == nil }
    for count in 0..<bytes.count where count != 48 { #expect(isRefused(Array(bytes[..<count]))) }
    #expect(isRefused([0] + bytes.dropFirst()))
    #expect(isRefused(bytes[..<8] + [UInt8](repeating: 1, count: 17 * 40)))
  }

  @Test("OpenID Connect Core §3.1.3.7: issuer, audience, azp, times and subject of a provider's token")
  func providers() throws {
    #expect(IdentityProvider(issuer: "", audiences: ["a"]) == nil)
    #expect(IdentityProvider(issuer: "i", audiences: []) == nil)
    #expect(IdentityProvider(issuer: "i", audiences: [""]) == nil)
    #expect(IdentityProvider(issuer: "i", audiences: ["a"], algorithms: [.hs256]) == nil)
    let provider = try #require(IdentityProvider(issuer: "https://id.example", audiences: ["palbe"]))
    var random = RandomSource(seed: 5)
    let key = Curve25519.Signing.PrivateKey(using: &random)
    let keys = KeySet([VerificationKey(id: "k", material: .ed25519(key.publicKey))])
    let now: Int64 = 1_800_000_000
    func refusal(_ change: (inout TokenClaims) -> Void) throws -> TokenError? {
      var claims = TokenClaims()
      (claims.issuer, claims.subject, claims.audience) = ("https://id.example", "anna", ["palbe"])
      (claims.issuedAt, claims.expiry) = (now, now + 600)
      change(&claims)
      let text = try SignedToken.text(.edDSA, keyID: "k", claims: claims.json) { span throws(CryptoError) in
        try key.signature(for: span)
      }
      do throws(TokenError) {
        let identity = try provider.identity(of: SignedToken(text), keys: keys, now: now)
        #expect(identity == ExternalIdentity(issuer: "https://id.example", subject: claims.subject ?? ""))
      } catch { return error }
      return nil
    }
    #expect(try refusal { _ in } == nil)
    #expect(
      try refusal {
        $0.audience = ["other", "palbe"]
        $0.authorizedParty = "palbe"
      } == nil)
    #expect(try refusal { $0.authorizedParty = "an app" } == nil)
    #expect(
      try refusal {
        $0.issuedAt = now + 60
        $0.notBefore = now + 60
        $0.expiry = now - 59
      } == nil)
    #expect(try refusal { $0.issuer = "https://id.example/" } == .wrongIssuer)
    #expect(try refusal { $0.issuer = nil } == .wrongIssuer)
    #expect(try refusal { $0.audience = [] } == .wrongAudience)
    #expect(try refusal { $0.audience = ["Palbe"] } == .wrongAudience)
    #expect(try refusal { $0.audience = ["other", "palbe"] } == .wrongAudience)
    #expect(
      try refusal {
        $0.audience = ["other", "palbe"]
        $0.authorizedParty = "other"
      } == .wrongAudience)
    #expect(try refusal { $0.expiry = now - 60 } == .expired)
    #expect(try refusal { $0.expiry = nil } == .missingClaim)
    #expect(try refusal { $0.notBefore = now + 61 } == .notYetValid)
    #expect(try refusal { $0.issuedAt = now + 61 } == .notYetValid)
    #expect(try refusal { $0.subject = nil } == .missingClaim)
    #expect(try refusal { $0.subject = "" } == .missingClaim)
    #expect(try refusal { $0.subject = String(repeating: "a", count: 256) } == .missingClaim)
  }
}
