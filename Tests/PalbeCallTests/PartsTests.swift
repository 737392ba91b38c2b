import PalbeFrameEncryption
import PalbeUnits
import Testing

@_spi(Testing) @testable import PalbeCall

@Test("ticks are computed from the first: an hour later none has drifted")
func ticksDoNotDrift() {
  let start = Instant(nanoseconds: 123)
  var ticks = Ticks(from: start, perSecond: 30)
  for _ in 0..<(30 * 3_600) { ticks.advance() }
  #expect(ticks.deadline == start + .seconds(3_600))
  var odd = Ticks(from: start, perSecond: 30)
  odd.advance()
  #expect(odd.deadline == start + .nanoseconds(33_333_333))
}

@Test("ticks that passed are left out beyond the limit, and the latest is kept")
func ticksAreSkipped() {
  let start = Instant.zero
  var ticks = Ticks(from: start, perSecond: 50)
  #expect(ticks.skip(at: start + .milliseconds(45), ifBehindBy: 2) == 0)
  #expect(ticks.index == 0)
  #expect(ticks.skip(at: start + .milliseconds(75), ifBehindBy: 2) == 3)
  #expect(ticks.index == 3)
  #expect(ticks.deadline == start + .milliseconds(60))
  #expect(ticks.skip(at: start, ifBehindBy: 0) == 0)
}

@Test(
  "edge addresses: host, port and path",
  arguments: [
    ("ws://127.0.0.1:7880", "127.0.0.1", 7_880, "ws://127.0.0.1:7880/rtc/v1?join_request="),
    ("wss://sfu.example", "sfu.example", 443, "wss://sfu.example/rtc/v1?join_request="),
    ("ws://[::1]:9/edge/", "::1", 9, "ws://[::1]:9/edge/rtc/v1?join_request="),
    ("WS://h", "h", 80, "WS://h/rtc/v1?join_request="),
  ])
func edgeAddresses(text: String, host: String, port: Int, prefix: String) throws {
  let edge = try #require(EdgeURL(text))
  #expect(edge.host == host)
  #expect(Int(edge.port) == port)
  #expect(edge.signalingURL(joinRequest: [0xfb, 0xff]) == prefix + "-_8=")
}

@Test(
  "what is no edge address",
  arguments: [
    "", "ws:", "ws://", "http://h", "ws://u@h", "ws://h:0", "ws://h#f", "ws://h:99999", "ws://[]:7880",
  ])
func notEdgeAddresses(text: String) { #expect(EdgeURL(text) == nil) }

@Test("the way to loopback leaves from loopback")
func route() throws {
  let address = try #require(EdgeURL("ws://127.0.0.1:7880")?.localAddress())
  #expect(address == SocketAddress(ipv4: 127, 0, 0, 1, port: 0))
}

@Test("RFC 7519 §7.2: the claims of a token")
func claims() throws {
  // {"sub":"ada#phone","video":{"room":"r","roomJoin":true}}
  let token = "e30.eyJzdWIiOiJhZGEjcGhvbmUiLCJ2aWRlbyI6eyJyb29tIjoiciIsInJvb21Kb2luIjp0cnVlfX0.c2ln"
  let claims = try #require(TokenClaims(token: token))
  #expect(claims.identity == "ada#phone")
  #expect(claims.room == "r")
  for end in token.indices { _ = TokenClaims(token: String(token[..<end])) }
  #expect(TokenClaims(token: token + "\r\n") == nil)
}

@Test("keys before the session: the newest again changes nothing, the oldest make room")
func pendingKeys() {
  var pending = PendingKeys()
  pending.confirm()
  for number in 0..<40 {
    for _ in 0..<2 { pending.append([UInt8(number)], sending: .whenConfirmed) }
  }
  #expect(pending.keys.map(\.key) == (7..<40).map { [UInt8($0)] })
  pending.confirm()
  #expect(pending.keys.last?.sending == .now)
  #expect(pending.keys.first?.sending == .whenConfirmed)
}

@Test("a latch keeps its first value, for those who waited and those who come later")
func latch() async {
  let latch = Latch<Int>()
  let waiter = Task { await latch.wait() }
  await Task.yield()
  latch.set(1)
  latch.set(2)
  #expect(await waiter.value == 1)
  #expect(await latch.wait() == 1)
  #expect(latch.value == 1)
}
