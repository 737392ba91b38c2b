@_spi(Testing) import PalbeWebServer
import Testing

@Suite("WebSocket addresses (RFC 6455 §3)")
struct WebSocketURLTests {
  @Test(
    "an address is cut into host, port and target",
    arguments: [
      ("ws://h", "h", "/"), ("WS://h:80/", "h", "/"), ("wss://h:443?q=1#f", "h", "/?q=1"),
      ("ws://h:7880/rtc", "h:7880", "/rtc"), ("ws://[::1]", "[::1]", "/"),
      ("wss://[fe80::1]:7880/a?b", "[fe80::1]:7880", "/a?b"),
    ])
  func reads(text: String, authority: String, target: String) throws {
    let url = try #require(WebSocketURL(text))
    #expect(url.authority == authority)
    #expect(url.target == target)
    #expect(WebSocketURL("\(url.isSecure ? "wss" : "ws")://\(url.authority)\(url.target)") == url)
  }

  @Test(
    "what is no WebSocket address",
    arguments: [
      "", "h", "http://h", "ws://", "ws:///p", "ws://u@h", "ws://h:0", "ws://h:65536", "ws://h:x",
      "ws://a:b:1",
      "ws://[::1", "ws://[::1]x", "ws://[h]", "ws://[[::1]", "ws://a]b", "ws://a[b", "ws://h/ x",
      "ws://h/\r\n",
      "ws://[]",
    ])
  func refuses(text: String) { #expect(WebSocketURL(text) == nil) }
}
