import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits
import PalbeWebServer

@testable import PalbeSFUServer

/// A participant's signaling over a real WebSocket, without media.
final class SignalClient {
  struct Silence: Error {}

  let socket: WebSocketClient
  private var messages: AsyncStream<WebSocketMessage>.Iterator

  private init(_ socket: WebSocketClient) {
    self.socket = socket
    messages = socket.messages.makeAsyncIterator()
  }

  static func connect(
    to server: SFUServer, room: String, identity: String,
    request: LiveKit.JoinRequest = JoinRequests.request()
  ) async throws -> SignalClient {
    var options = WebSocketClient.Options()
    options.headers = [.init("Authorization", "Bearer " + Tokens.join(room: room, identity: identity))]
    let url = server.url + "/rtc/v1?join_request=" + JoinRequests.item(request)
    return SignalClient(try await WebSocketClient.connect(to: url, options: options))
  }

  func send(_ message: LiveKit.SignalRequest.Message) {
    socket.send(binary: LiveKit.SignalRequest(message).serialized())
  }

  /// The next message; nil when the socket has ended.
  func next() async throws -> LiveKit.SignalResponse.Message? {
    while let message = await messages.next() {
      guard case .binary(let bytes) = message else { continue }
      if let content = try LiveKit.SignalResponse(serialized: bytes).message { return content }
    }
    return nil
  }

  /// The first message in a text frame that `pick` takes.
  func firstText<T>(_ pick: (LiveKit.SignalResponse.Message) -> T?) async throws -> T {
    while let message = await messages.next() {
      guard case .text(let text) = message,
        let content = try LiveKit.SignalResponse(json: text).message, let found = pick(content)
      else { continue }
      return found
    }
    throw Silence()
  }

  /// The first message that `pick` takes; others are passed over.
  func first<T>(_ pick: (LiveKit.SignalResponse.Message) -> T?) async throws -> T {
    while let message = try await next() {
      if let found = pick(message) { return found }
    }
    throw Silence()
  }
}
