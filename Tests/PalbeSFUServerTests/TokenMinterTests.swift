import PalbeSFUCore
import Testing

@_spi(Testing) @testable import PalbeSFUServer

struct TokenMinterTests {
  @Test("refresh_token: what is minted verifies and grants what the participant has, for ten minutes")
  func roundTrip() throws {
    let keys = ["b": String(repeating: "b", count: 32), "a": String(repeating: "a", count: 32)]
    var grant = AccessGrant(room: "raum \"1\"", identity: "anna#phone")
    grant.name = "Anna"
    grant.metadata = "{}"
    grant.attributes = ["k": "v"]
    grant.canPublish = false
    grant.canPublishSources = ["camera"]
    grant.canUpdateOwnMetadata = true
    grant.requiresE2EE = true
    let minter = try #require(TokenMinter(keys: keys))
    let text = try #require(minter.token(for: grant, now: 1_000))
    #expect(try AccessToken(verifying: text, keys: keys, now: 1_000).grant == grant)
    #expect(try AccessToken(verifying: text, keys: keys, now: 1_600).video.roomJoin)
    #expect(throws: AccessTokenError.expired) {
      try AccessToken(verifying: text, keys: keys, now: 1_000 + 600 + 60)
    }
    #expect(throws: AccessTokenError.badSignature) {
      try AccessToken(verifying: text, keys: ["a": "another"], now: 1_000)
    }
    #expect(TokenMinter(keys: [:]) == nil)
  }
}
