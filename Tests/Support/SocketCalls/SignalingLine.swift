public import PalbeWebServer
import PalbeWire
import Synchronization

/// A client's WebSocket to an SFU's `/rtc/v1`, between its own thread and the one that drives the client's session.
public final class SignalingLine: WebSocketHandler {
  private struct State {
    var client: WebSocketClient?
    var messages: [[UInt8]] = []
    var isClosed = false
    var isLeaving = false
  }
  private let state = Mutex(State())

  public init() {}

  /// - Parameter server: its address, as in `ws://127.0.0.1:7880`.
  public func connect(to server: String, token: String, joinRequest: [UInt8]) async throws {
    let item = Base64.encode(joinRequest, alphabet: .url)
    let client = try await WebSocketClient.connect(
      to: server + "/rtc/v1?access_token=\(token)&join_request=\(item)", handler: self)
    // It may have been told to leave meanwhile.
    let isLeaving = state.withLock { state in
      if !state.isLeaving { state.client = client }
      return state.isLeaving
    }
    if isLeaving { client.disconnect() }
  }

  /// Connects in a task of its own; one that fails is closed.
  public func open(to server: String, token: String, joinRequest: [UInt8]) {
    Task {
      do {
        try await connect(to: server, token: token, joinRequest: joinRequest)
      } catch {
        state.withLock { $0.isClosed = true }
      }
    }
  }

  /// What came since the last call, and whether no more will.
  public func take() -> (messages: [[UInt8]], isClosed: Bool) {
    state.withLock { state in
      defer { state.messages = [] }
      return (state.messages, state.isClosed)
    }
  }

  public func send(_ message: [UInt8]) {
    let client = state.withLock { $0.client }
    client?.send(binary: message)
  }

  /// Ends it as `close` does; once, now or as soon as it is open.
  public func end(_ close: (WebSocketClient) -> Void = { $0.disconnect() }) {
    let client = state.withLock { state in
      state.isLeaving = true
      defer { state.client = nil }
      return state.client
    }
    if let client { close(client) }
  }

  // MARK: The WebSocket's thread

  public func opened() {}
  public func received(binary: [UInt8]) { state.withLock { $0.messages.append(binary) } }
  public func received(text: String) {}
  public func closed(_ closure: WebSocketClosure) { state.withLock { $0.isClosed = true } }
}
