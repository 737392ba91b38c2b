import PalbeCrypto
import PalbeUnits
import PalbeWebTokens
import PalbeWire
import Testing

private let payload =
  "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

private func base64(_ text: String) -> [UInt8] { Base64.decode(text, alphabet: .url) ?? [] }

private func encoded(_ text: String) -> String {
  Base64.encode([UInt8](text.utf8), alphabet: .url, padded: false)
}

private func keySet(_ keys: String...) throws -> KeySet {
  try KeySet(json: [UInt8](#"{"keys":[\#(keys.joined(separator: ","))]}"#.utf8))
}

private func refusal(_ body: () throws -> Void) -> TokenError? {
  do { try body() } catch { return error as? TokenError }
  return nil
}

private let rsa =
  #"{"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"}"#
private let p256 =
  #"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#
private let ed25519 = #"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#

@Suite("Signed web tokens")
struct TokenTests {
  @Test("RFC 7515 A.1: HS256")
  func hs256() throws {
    let token = try SignedToken(
      "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\(payload).dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    let key = base64("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow")
    let other = Array(key.dropLast() + [0])
    let results = [token.isSigned(with: key.span), token.isSigned(with: other.span)]
    #expect(results == [true, false])
    let claims = try TokenClaims(token.payload)
    #expect(claims.issuer == "joe" && claims.expiry == 1_300_819_380)
  }

  @Test("RFC 7515 A.2 and A.3, RFC 8037 A.4: RS256, ES256, EdDSA; every changed byte is refused")
  func published() throws {
    let texts = [
      "eyJhbGciOiJSUzI1NiJ9.\(payload)."
        + "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9u"
        + "JdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_"
        + "eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqV"
        + "t5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
      "eyJhbGciOiJFUzI1NiJ9.\(payload)."
        + "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
    ]
    for (text, key) in zip(texts, [rsa, p256]) {
      let claims = try keySet(key).claims(of: SignedToken(text), allowing: TokenAlgorithm.publicKey)
      #expect(claims.issuer == "joe")
      let dot = text.lastIndex(of: ".")!
      let signature = base64(String(text[text.index(after: dot)...]))
      for index in stride(from: 0, to: signature.count, by: 7) {
        var changed = signature
        changed[index] ^= 1
        let forged = text[...dot] + Base64.encode(changed, alphabet: .url, padded: false)
        let token = try SignedToken(forged)
        #expect(
          refusal { _ = try keySet(key).claims(of: token, allowing: [.rs256, .es256]) } == .badSignature)
      }
    }
    let token = try SignedToken(
      "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc."
        + "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg")
    #expect(try keySet(ed25519).keys[0].isSigner(of: token))
    #expect(try !keySet(p256).keys[0].isSigner(of: token))
  }

  @Test("RFC 7518 §3.3, §3.5: a provider's RS256 and PS256; a PSS salt of another length is refused")
  func provider() throws {
    let keys = try KeySet(json: [UInt8](ProviderTokens.keySet.utf8))
    for text in [ProviderTokens.rs256, ProviderTokens.ps256] {
      let claims = try keys.claims(of: SignedToken(text), allowing: TokenAlgorithm.publicKey)
      #expect(claims.subject == "anna" && claims.audience == ["palbe"])
      try claims.checkTime(now: 1_800_000_659, leeway: 60)
      #expect(refusal { try claims.checkTime(now: 1_800_000_660, leeway: 60) } == .expired)
      #expect(refusal { try claims.checkTime(now: 1_799_999_939, leeway: 60) } == .notYetValid)
    }
    let short = try SignedToken(ProviderTokens.shortSalt)
    #expect(refusal { _ = try keys.claims(of: short, allowing: [.ps256]) } == .badSignature)
  }

  @Test(
    "RFC 8725 §2.1, §3.1: the key says which algorithm; none, HS256 under a public key and a foreign alg are refused"
  )
  func confusion() throws {
    let keys = try KeySet(json: [UInt8](ProviderTokens.keySet.utf8))
    let parts = ProviderTokens.rs256.split(separator: ".")
    // The modulus as an HMAC secret.
    let forged = SignedToken.text([UInt8](#"{"sub":"anna"}"#.utf8), secret: ProviderTokens.modulus)
    for text in [
      forged, "\(encoded(#"{"alg":"none"}"#)).\(parts[1]).",
      "\(encoded(#"{"alg":"RS512"}"#)).\(parts[1]).\(parts[2])",
    ] {
      let token = try SignedToken(text)
      #expect(
        refusal { _ = try keys.claims(of: token, allowing: TokenAlgorithm.publicKey) } == .wrongAlgorithm)
    }
    // Even where HS256 is allowed, no key of a set is for it.
    #expect(
      refusal { _ = try keys.claims(of: SignedToken(forged), allowing: [.hs256]) } == .unknownKey)
    let bound = ProviderTokens.keySet.replacing(#""use":"sig""#, with: #""alg":"PS256""#)
    let strict = try KeySet(json: [UInt8](bound.utf8))
    let rs256 = try SignedToken(ProviderTokens.rs256)
    #expect(refusal { _ = try strict.claims(of: rs256, allowing: TokenAlgorithm.publicKey) } == .unknownKey)
    #expect(refusal { _ = try keys.claims(of: rs256, allowing: [.edDSA]) } == .wrongAlgorithm)
    let renamed = try KeySet(
      json: [UInt8](ProviderTokens.keySet.replacing("rsa-1", with: "rsa-2").utf8))
    #expect(refusal { _ = try renamed.claims(of: rs256, allowing: [.rs256]) } == .unknownKey)
  }

  @Test("RFC 7517 §5: keys that are of no use are passed over, what is no key set is refused")
  func keySets() throws {
    let keys = try keySet(
      p256, #"{"kty":"oct","k":"AAAA"}"#, #"{"kty":"EC","crv":"P-384","x":"AA","y":"AA"}"#,
      p256.replacing("f83O", with: "f83P"), p256.replacing(#""kty""#, with: #""use":"enc","kty""#),
      p256.replacing(#""kty""#, with: #""key_ops":["sign"],"kty""#),
      p256.replacing(#""kty""#, with: #""d":"AAAA","kty""#),
      rsa.replacing("AQAB", with: "AQ"), rsa.replacing("ofgW", with: "AAAA"),
      #"{"kty":"RSA","n":"oQ","e":"AQAB"}"#,
      ed25519.replacing(#""kty""#, with: #""kid":"one","alg":"EdDSA","kty""#),
      ed25519.replacing(#""kty""#, with: #""alg":"ES256","kty""#), "{}")
    #expect(keys.keys.map(\.algorithms) == [[.es256], [.edDSA]])
    #expect(keys.keys.map(\.id) == [nil, "one"])
    #expect(try KeySet(json: keys.json) == keys)
    for text in [
      "", "[]", "{}", #"{"keys":{}}"#, #"{"keys":[1]}"#, #"{"keys":[]} x"#, #"{"keys":[],"keys":[]}"#,
      #"{"keys":[{"kty":1}]}"#, #"{"keys":[\#(Array(repeating: "{}", count: 65).joined(separator: ","))]}"#,
    ] {
      #expect(throws: JSONError.self) { try KeySet(json: [UInt8](text.utf8)) }
    }
    let whole = [UInt8](ProviderTokens.keySet.utf8)
    for count in 0..<whole.count {
      #expect(throws: JSONError.self) { try KeySet(json: Array(whole[..<count])) }
    }
  }

  @Test(
    "RFC 7515 §4.1.11, §7.1: what is not the compact form, or must be understood and is not, is malformed")
  func malformed() {
    let good = encoded(#"{"alg":"HS256"}"#)
    for text in [
      "", ".", "..", "a.b", "a.b.c.d", "\(good).e30", "\(good)=.e30.", "\(encoded("[]")).e30.AA",
      "\(encoded(#"{"alg":"HS256","crit":["b64"]}"#)).e30.AA",
      "\(encoded(#"{"alg":"HS256","alg":"none"}"#)).e30.AA",
      "\(encoded(#"{"alg":7}"#)).e30.AA", "\(encoded("{}")).e30.AA", "\(good).e30.A",
      "\(good).\(String(repeating: "A", count: 16_384)).AA",
    ] {
      #expect(refusal { _ = try SignedToken(text) } == .malformed, "\(text.prefix(60))")
    }
    let whole = ProviderTokens.rs256
    for count in 0..<whole.utf8.count {
      // A cut signature is still a token, one that nobody has signed.
      guard let token = try? SignedToken(whole.prefix(count)),
        let keys = try? KeySet(json: [UInt8](ProviderTokens.keySet.utf8))
      else { continue }
      #expect(refusal { _ = try keys.claims(of: token, allowing: [.rs256]) } == .badSignature)
    }
  }

  @Test("RFC 7519 §4.1: claims come back as they were; other types and claims that stand twice are refused")
  func claims() throws {
    var claims = TokenClaims()
    claims.issuer = "a\"b"
    claims.subject = "s"
    claims.audience = ["one", "two"]
    claims.authorizedParty = "one"
    claims.sessionID = "ses"
    (claims.issuedAt, claims.notBefore, claims.expiry, claims.ownExpiry) = (1, 2, 3, 4)
    #expect(try TokenClaims(claims.json) == claims)
    #expect(try TokenClaims([UInt8](#"{"aud":"x","exp":1.9e3}"#.utf8)).expiry == 1_900)
    for text in [
      "[]", #"{"exp":"1"}"#, #"{"exp":1,"exp":2}"#, #"{"aud":[1]}"#, #"{"iss":null}"#, #"{"exp":1e300}"#,
      #"{"sub":"a"} "# + "x", #"{"other":1,"other":2}"#,
    ] {
      #expect(refusal { _ = try TokenClaims([UInt8](text.utf8)) } == .malformed, "\(text)")
    }
    #expect(refusal { try TokenClaims().checkTime(now: 0, leeway: 0) } == .missingClaim)
  }

  @Test("RFC 8037 §3.1: what a key signs, its key set verifies, by name")
  func roundTrip() throws {
    var random = RandomSource(seed: 1)
    let key = Curve25519.Signing.PrivateKey(using: &random)
    let text = try SignedToken.text(.edDSA, keyID: "k", claims: TokenClaims().json) {
      span throws(CryptoError) in
      try key.signature(for: span)
    }
    let keys = KeySet([VerificationKey(id: "k", material: .ed25519(key.publicKey))])
    #expect(try keys.claims(of: SignedToken(text), allowing: [.edDSA]) == TokenClaims())
  }
}
