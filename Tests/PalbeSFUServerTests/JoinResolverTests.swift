import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeUnits
import PalbeWebServer
import PalbeWire
import Testing

@_spi(Testing) @testable import PalbeSFUServer

@Suite("Who may join, decided before the upgrade (LiveKit protocol 1.1)")
struct JoinResolverTests {
  let resolver = JoinResolver(keys: [Tokens.key: Tokens.secret])
  let now: Int64 = 1_700_000_000

  private func claims(
    identity: String = "anna", room: String = "hall", roomJoin: String = "true", expiry: Int64 = 60
  ) -> String {
    """
    {"iss":"devkey","sub":"\(identity)","exp":\(now + expiry),"video":{"roomJoin":\(roomJoin),"room":"\(room)"}}
    """
  }

  private func outcome(
    token: String?, item: String? = JoinRequests.item(), header: String? = nil
  ) -> Result<JoinDetailsSummary, JoinRefusal> {
    var query: [HTTPRequest.Field] = []
    if let item { query.append(.init("join_request", item)) }
    if let token { query.append(.init("access_token", token)) }
    let request = HTTPRequest(
      path: "/rtc/v1", query: query, headers: header.map { [.init("authorization", $0)] } ?? [])
    do throws(JoinRefusal) {
      let details = try resolver.resolve(request, now: now)
      return .success(
        JoinDetailsSummary(
          room: details.grant.room, identity: details.grant.identity,
          autoSubscribe: details.request.connectionSettings?.autoSubscribe))
    } catch { return .failure(error) }
  }

  struct JoinDetailsSummary: Equatable {
    var room: String
    var identity: String
    var autoSubscribe: Bool?
  }

  private func status(_ outcome: Result<JoinDetailsSummary, JoinRefusal>) -> Int {
    switch outcome {
    case .success: 101
    case .failure(let refusal): refusal.status
    }
  }

  @Test("a token by header or by query, a request padded or not, plain or gzip")
  func accepts() {
    let expected = JoinDetailsSummary(room: "hall", identity: "anna", autoSubscribe: true)
    let good = Tokens.signed(claims: claims())
    for compressed in [false, true] {
      for padded in [false, true] {
        let item = JoinRequests.item(compressed: compressed, padded: padded)
        #expect(outcome(token: good, item: item) == .success(expected))
        #expect(outcome(token: nil, item: item, header: "Bearer " + good) == .success(expected))
      }
    }
    // The header wins.
    #expect(outcome(token: "nonsense", header: "Bearer " + good) == .success(expected))
  }

  @Test("rules 1 to 3: what the token lacks is 401")
  func unauthorized() {
    let good = Tokens.signed(claims: claims())
    #expect(status(outcome(token: nil)) == 401)
    #expect(status(outcome(token: "")) == 401)
    #expect(status(outcome(token: "nonsense")) == 401)
    #expect(status(outcome(token: good, header: good)) == 401)
    #expect(status(outcome(token: good, header: "Basic YTpi")) == 401)
    #expect(status(outcome(token: good, header: "")) == 401)
    #expect(status(outcome(token: good, header: "Bearer ")) == 401)
    #expect(status(outcome(token: Tokens.signed(claims: claims(), secret: "other"))) == 401)
    #expect(status(outcome(token: Tokens.signed(claims: claims(expiry: -61)))) == 401)
    #expect(status(outcome(token: Tokens.signed(claims: claims(roomJoin: "false")))) == 401)
    let bare = #"{"iss":"devkey","sub":"anna","exp":\#(now + 60)}"#
    #expect(status(outcome(token: Tokens.signed(claims: bare))) == 401)
    // A token that is refused says so even when the rest is wrong too.
    #expect(status(outcome(token: "nonsense", item: "!")) == 401)
  }

  private func details(_ path: String, _ items: [(String, String)]) throws -> JoinDetails {
    let token = [HTTPRequest.Field("access_token", Tokens.signed(claims: claims()))]
    let query = token + items.map { HTTPRequest.Field($0.0, $0.1) }
    return try resolver.resolve(HTTPRequest(path: path, query: query, headers: []), now: now)
  }

  @Test("v0: query items instead of a join_request, two connections; what is absent is auto_subscribe")
  func queryItems() throws {
    let python = [
      ("sdk", "python"), ("os", "linux"), ("protocol", "17"), ("client_protocol", "2"),
      ("auto_subscribe", "1"), ("adaptive_stream", "0"), ("version", "1.2.1"),
    ]
    let full = try details("/rtc", python)
    #expect(full.usesTwoConnections)
    #expect(full.request.clientInfo?.sdk == .python)
    #expect(full.request.clientInfo?.protocol == 17)
    #expect(full.request.connectionSettings?.autoSubscribe == true)
    #expect(!full.request.reconnect)
    #expect(try details("/rtc", []).request.connectionSettings?.autoSubscribe == true)
    #expect(try details("/rtc", [("auto_subscribe", "0")]).request.connectionSettings?.autoSubscribe == false)
    let resumed = try details("/rtc", [("reconnect", "1"), ("sid", "PA_x"), ("reconnect_reason", "2")])
    #expect(resumed.request.reconnect && resumed.request.participantSid == "PA_x")
    #expect(resumed.request.reconnectReason == .publisherFailed)
    // {"a":"b"}
    let attributes = try details("/rtc", [("attributes", "eyJhIjoiYiJ9")])
    #expect(attributes.request.participantAttributes == ["a": "b"])
    #expect(throws: JoinRefusal.self) { try details("/rtc", [("attributes", "!")]) }
    #expect(throws: JoinRefusal.self) { try details("/rtc/v1", python) }
    #expect(full.request.connectionSettings?.autoSubscribeDataTrack == false)
    let newer = try details(
      "/rtc", [("auto_subscribe_data_track", "1"), ("capabilities", "CAP_PACKET_TRAILER,CAP_UNHEARD_OF,")])
    #expect(newer.request.connectionSettings?.autoSubscribeDataTrack == true)
    #expect(newer.request.clientInfo?.capabilities == [.packetTrailer])
    // One connection where the client says it in the newer way.
    #expect(try !details("/rtc", [("join_request", JoinRequests.item())]).usesTwoConnections)
    #expect(try details("/rtc", [("protocol", "999999999999")]).request.clientInfo?.protocol == 0)
  }

  @Test("rules 4 and 5: identity and room have 1 to 256 bytes, else 400")
  func names() {
    #expect(status(outcome(token: Tokens.signed(claims: claims(identity: "")))) == 400)
    #expect(status(outcome(token: Tokens.signed(claims: claims(room: "")))) == 400)
    for (length, expected) in [(256, 101), (257, 400)] {
      let name = String(repeating: "a", count: length)
      #expect(status(outcome(token: Tokens.signed(claims: claims(identity: name)))) == expected)
      #expect(status(outcome(token: Tokens.signed(claims: claims(room: name)))) == expected)
    }
    // Bytes, not characters.
    let wide = String(repeating: "ä", count: 129)
    #expect(status(outcome(token: Tokens.signed(claims: claims(identity: wide)))) == 400)
  }

  @Test("rule 6: a join_request that cannot be read is 400, and 1 MiB is its cap")
  func joinRequests() {
    let token = Tokens.signed(claims: claims())
    func status(_ item: String?) -> Int { self.status(outcome(token: token, item: item)) }
    #expect(status(nil) == 400)
    #expect(status("") == 400)
    #expect(status("a+b/") == 400)
    #expect(status("AAAA=") == 400)
    #expect(status(JoinRequests.item([1, 2, 3], compression: .gzip)) == 400)
    #expect(status(JoinRequests.item([0xff], compression: .none)) == 400)
    #expect(status(JoinRequests.item([], compression: .init(rawValue: 2))) == 400)
    #expect(status(JoinRequests.item(LiveKit.JoinRequest(), compressed: true)) == 101)
    let bomb = gzip([UInt8](repeating: 0, count: 4 << 20))
    #expect(
      outcome(token: token, item: JoinRequests.item(bomb, compression: .gzip))
        == .failure(.badRequest("join_request is larger than 1048576 bytes")))
    let item = JoinRequests.item(padded: false)
    for count in 0..<item.utf8.count {
      #expect(status(String(item.prefix(count))) == 400, "prefix of \(count)")
    }
  }

  @Test("20,000 damaged requests are refused or read, and never trap")
  func damaged() {
    var random = RandomSource(seed: 2)
    let plain = JoinRequests.request(offer: String(repeating: "a=b\r\n", count: 20)).serialized()
    for round in 0..<20_000 {
      var bytes = round.isMultiple(of: 2) ? plain : gzip(plain)
      for _ in 0..<(1 + Int(random.next() % 4)) {
        bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      if round.isMultiple(of: 3) { bytes.removeLast(Int(random.next() % UInt64(bytes.count))) }
      let item = JoinRequests.item(bytes, compression: round.isMultiple(of: 2) ? .none : .gzip)
      _ = try? JoinResolver.decode(item)
    }
  }
}
