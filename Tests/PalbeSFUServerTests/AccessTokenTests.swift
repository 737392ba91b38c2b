import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import Testing

@_spi(Testing) @testable import PalbeSFUServer

@Suite("Access tokens (RFC 7519, HS256)")
struct AccessTokenTests {
  let keys = ["devkey": "secret"]
  let now: Int64 = 1_700_000_000

  private func token(
    header: String = #"{"alg":"HS256","typ":"JWT"}"#, claims: String, secret: String = "secret"
  ) -> String { Tokens.signed(header: header, claims: claims, secret: secret) }

  private func refusal(_ token: String) -> AccessTokenError? {
    do {
      _ = try AccessToken(verifying: token, keys: keys, now: now)
      return nil
    } catch { return error }
  }

  @Test("a token with every claim is read; absent grants take LiveKit's defaults")
  func reads() throws {
    let full = try AccessToken(
      verifying: token(
        claims: """
          {"iss":"devkey","sub":"usr_a#mdv_1","exp":\(now + 60),"nbf":\(now),"name":"Anna","metadata":"m",
          "attributes":{"k":"v"},"video":{"roomJoin":true,"room":"hall","canPublish":false,"canPublishSources":["camera"],
          "canUpdateOwnMetadata":true,"hidden":true}}
          """), keys: keys, now: now)
    #expect(full.identity == "usr_a#mdv_1")
    #expect(full.grant.room == "hall")
    #expect(full.grant.attributes == ["k": "v"])
    #expect(!full.grant.canPublish)
    #expect(!full.grant.canPublishData)
    #expect(full.grant.canSubscribe)
    #expect(full.grant.canPublishSources == ["camera"])
    #expect(full.grant.hidden)
    let bare = try AccessToken(
      verifying: token(claims: #"{"iss":"devkey","jti":"j","exp":\#(now + 1)}"#), keys: keys, now: now)
    #expect(bare.identity == "j")
    #expect(!bare.video.roomJoin)
    #expect(bare.video.canPublish && bare.video.canSubscribe && bare.video.canPublishData)
    #expect(!bare.video.canUpdateOwnMetadata)
  }

  @Test("kind, kindDetails, roomConfig and the grants of agents and recorders; a bad roomConfig is refused")
  func moreClaims() throws {
    func read(_ more: String) throws(AccessTokenError) -> AccessGrant {
      try AccessToken(
        verifying: token(claims: #"{"iss":"devkey","sub":"a","exp":\#(now + 60),\#(more)}"#), keys: keys,
        now: now
      ).grant
    }
    let grant = try read(
      #""kind":"agent","kindDetails":["cloud_agent","unheard_of"],"video":{"room":"hall","recorder":true,"agent":true,"#
        + #""canManageAgentSession":true,"canSubscribeMetrics":true},"#
        + #""roomConfig":{"name":"x","emptyTimeout":60,"max_participants":5,"metadata":"m","agents":[{"agentName":"b"}]}"#
    )
    #expect(grant.kind == .agent && grant.kindDetails == [.cloudAgent])
    #expect(grant.isRecorder && grant.isAgent && grant.canManageAgentSession && grant.canSubscribeMetrics)
    var settings = RoomSettings(name: "hall")
    settings.emptyTimeout = 60
    settings.maxParticipants = 5
    settings.metadata = "m"
    #expect(grant.roomSettings == settings)
    let plain = try read(#""kind":"unheard of","roomConfig":null,"roomPreset":"p""#)
    #expect(plain.kind == .standard && plain.roomSettings == nil && !plain.isAgent)
    for bad in [#""roomConfig":[]"#, #""roomConfig":{"emptyTimeout":"x"}"#, #""roomConfig":{"name":5}"#] {
      #expect(throws: AccessTokenError.malformed) { try read(bad) }
    }
    // A renewed token says the same, but for the room's making.
    let minter = try #require(TokenMinter(keys: keys))
    let renewed = try AccessToken(
      verifying: try #require(minter.token(for: grant, now: now)), keys: keys, now: now)
    var expected = grant
    expected.roomSettings = nil
    #expect(renewed.grant == expected)
  }

  @Test(
    "S4-3: the tag require_e2ee makes a room that takes only encrypted tracks, by a token or by CreateRoom")
  func encryptionTag() throws {
    for (tags, isRequired) in [
      (#"{"require_e2ee":"true"}"#, true), (#"{"require_e2ee":"Yes"}"#, true),
      (#"{"require_e2ee":"false"}"#, false), (#"{"require_e2ee":"0"}"#, false), (#"{"other":"true"}"#, nil),
    ] as [(String, Bool?)] {
      let claims = #"{"iss":"devkey","sub":"a","exp":\#(now + 60),"roomConfig":{"tags":\#(tags)}}"#
      let grant = try AccessToken(verifying: token(claims: claims), keys: keys, now: now).grant
      #expect(grant.roomSettings?.requiresE2EE == isRequired)
      let request = try LiveKit.CreateRoomRequest(json: #"{"name":"hall","tags":\#(tags)}"#)
      guard case .create(let settings)? = RoomCommand(.createRoom(request)) else {
        Issue.record("no command")
        continue
      }
      #expect(settings.requiresE2EE == isRequired && settings.name == "hall")
    }
  }

  @Test("validity has a leeway of 60 s on both sides")
  func validity() {
    let leeway = AccessToken.leeway
    #expect(refusal(token(claims: #"{"iss":"devkey","exp":\#(now - leeway + 1)}"#)) == nil)
    #expect(refusal(token(claims: #"{"iss":"devkey","exp":\#(now - leeway)}"#)) == .expired)
    let far = now + 1_000
    #expect(refusal(token(claims: #"{"iss":"devkey","exp":\#(far),"nbf":\#(now + leeway)}"#)) == nil)
    #expect(
      refusal(token(claims: #"{"iss":"devkey","exp":\#(far),"nbf":\#(now + leeway + 1)}"#)) == .notYetValid)
    #expect(refusal(token(claims: #"{"iss":"devkey"}"#)) == .missingExpiry)
  }

  @Test("another key, another algorithm, another signature and garbage are told apart")
  func refusals() {
    let claims = #"{"iss":"devkey","exp":\#(now + 60)}"#
    let good = token(claims: claims)
    #expect(refusal(good) == nil)
    #expect(refusal(token(claims: claims, secret: "other")) == .badSignature)
    #expect(refusal(token(header: #"{"alg":"none"}"#, claims: claims)) == .wrongAlgorithm)
    #expect(refusal(token(claims: #"{"iss":"nobody","exp":\#(now + 60)}"#)) == .unknownKey)
    #expect(refusal(token(claims: #"{"exp":\#(now + 60)}"#)) == .unknownKey)
    #expect(refusal("") == .malformed)
    #expect(refusal("a.b") == .malformed)
    #expect(refusal("a.b.c.d") == .malformed)
    #expect(refusal(String(repeating: "a", count: 20_000)) == .malformed)
    // Every prefix is refused.
    for count in 0..<good.count { #expect(refusal(String(good.prefix(count))) != nil) }
  }
}
