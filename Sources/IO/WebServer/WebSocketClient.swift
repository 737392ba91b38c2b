import PalbeUnits
import Synchronization

/// Why a client is not connected.
public enum WebSocketClientError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Not a ws:// or wss:// address.
  case malformedURL
  /// The server answered the upgrade with an HTTP status: 401, 404 and so on, and its text (at most 64 KiB;
  /// empty
  /// over TLS, where the library below keeps it).
  case refused(status: Int, body: String)
  /// No connection, with the library's words: an unknown name, a closed port, a failed TLS handshake.
  case unreachable(String)
  /// The server does not speak WebSocket, or broke off in the handshake.
  case malformedAnswer
  /// Nothing within the time limit.
  case timedOut
  /// The task was cancelled.
  case cancelled

  /// One line for a person.
  public var description: String {
    switch self {
    case .malformedURL: "not a ws:// or wss:// address"
    case .refused(let status, let body): "the server refused with \(status): \(body)"
    case .unreachable(let reason): "cannot reach the server: \(reason)"
    case .malformedAnswer: "the server does not answer as a WebSocket server"
    case .timedOut: "the server did not answer in time"
    case .cancelled: "cancelled"
    }
  }
}

/// A WebSocket to a server.
///
///     let socket = try await WebSocketClient.connect(to: "ws://127.0.0.1:7880/rtc/v1?…", options: options)
///     socket.send(binary: request)
///     for await message in socket.messages { … }     // ends when the socket does
///     print(socket.closure)
///
/// All clients of a process share a service thread, so connecting is cheap; a slow name lookup of one
/// delays the others.
public final class WebSocketClient: Sendable {
  /// How to connect and what to allow.
  public struct Options: Sendable {
    /// Sent with the upgrade, such as `Authorization: Bearer …`. They must not contain line breaks.
    public var headers: [HTTPRequest.Field] = []
    /// Until the handshake is done, name lookup and TLS included.
    public var timeout = TimeDelta.seconds(10)
    /// A message from the server, its fragments together; a longer one ends the socket.
    public var messageByteCount = 16 << 20
    /// Bytes queued and not yet sent before the server counts as too slow and the socket is ended.
    public var sendQueueByteCount = 16 << 20
    /// Messages received and not yet taken from `messages` before the socket is ended.
    public var receiveQueueCount = 4_096
    /// A silent server is sent a ping after this long.
    public var pingInterval = TimeDelta.seconds(10)
    /// A server from which nothing comes for this long is given up.
    public var silenceTimeout = TimeDelta.seconds(30)
    /// For wss: a PEM file of certificate authorities to trust instead of the system's.
    public var trustedCertificateFile: String?

    /// No headers, the system's certificate authorities, the limits above.
    public init() {}
  }

  private let connection: ClientConnection
  /// What comes, in order, for one consumer; ends with the socket. Empty when a handler was given to
  /// `connect`.
  public let messages: AsyncStream<WebSocketMessage>

  private init(connection: ClientConnection, messages: AsyncStream<WebSocketMessage>) {
    self.connection = connection
    self.messages = messages
  }

  /// Connects; messages come from `messages`.
  public static func connect(
    to url: String, options: Options = Options()
  ) async throws(WebSocketClientError) -> WebSocketClient {
    let (stream, continuation) = AsyncStream.makeStream(
      of: WebSocketMessage.self, bufferingPolicy: .bufferingOldest(options.receiveQueueCount))
    let handler = StreamHandler(continuation: continuation)
    return try await connect(to: url, options: options, handler: handler, messages: stream) { connection in
      handler.connection.withLock { $0 = Weak(connection) }
    }
  }

  /// Connects; `handler` hears everything, on the shared service thread, and must not block.
  public static func connect(
    to url: String, options: Options = Options(), handler: any WebSocketHandler
  ) async throws(WebSocketClientError) -> WebSocketClient {
    let empty = AsyncStream<WebSocketMessage> { $0.finish() }
    return try await connect(to: url, options: options, handler: handler, messages: empty) { _ in }
  }

  private static func connect(
    to url: String, options: Options, handler: any WebSocketHandler, messages: AsyncStream<WebSocketMessage>,
    prepare: (ClientConnection) -> Void
  ) async throws(WebSocketClientError) -> WebSocketClient {
    guard let url = WebSocketURL(url) else { throw .malformedURL }
    guard let service = ClientService.service(for: url, options: options) else {
      throw .unreachable("no memory, thread or descriptor left, or no readable certificate file")
    }
    let connection = ClientConnection(url: url, options: options, handler: handler, service: service)
    prepare(connection)
    let timer = Task {
      try? await Task.sleep(nanoseconds: UInt64(max(0, options.timeout.nanoseconds)))
      if !Task.isCancelled { connection.fail(.timedOut) }
    }
    defer { timer.cancel() }
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in connection.start(continuation) }
    } onCancel: {
      connection.fail(.cancelled)
    }
    try result.get()
    return WebSocketClient(connection: connection, messages: messages)
  }

  /// Queues a binary message.
  /// - Returns: false when the socket is closing or gone, or when the queue's limit is passed: the socket
  /// then ends.
  @discardableResult
  public func send(binary bytes: [UInt8]) -> Bool { connection.send(.binary(bytes)) }

  /// Queues a text message. Returns as `send(binary:)` does.
  @discardableResult
  public func send(text: String) -> Bool { connection.send(.text(text)) }

  /// Sends what is queued, then a close frame; the socket ends when the server answers, at the latest after
  /// two
  /// seconds. Only the first call counts. A client that is dropped without a close stays connected.
  public func close(code: UInt16 = 1_000, reason: String = "") {
    connection.close(.init(code: code, reason: reason))
  }

  /// Ends the socket at once, without a close frame.
  public func disconnect() { connection.abandon() }

  /// How the socket ended; nil while it is open.
  public var closure: WebSocketClosure? { connection.closure }
}

/// Feeds `messages`, and ends the socket of a consumer that does not keep up.
private final class StreamHandler: WebSocketHandler {
  let continuation: AsyncStream<WebSocketMessage>.Continuation
  let connection = Mutex(Weak(nil))

  init(continuation: AsyncStream<WebSocketMessage>.Continuation) { self.continuation = continuation }

  func opened() {}
  func received(binary: [UInt8]) { yield(.binary(binary)) }
  func received(text: String) { yield(.text(text)) }
  func closed(_ closure: WebSocketClosure) { continuation.finish() }

  private func yield(_ message: WebSocketMessage) {
    guard case .dropped = continuation.yield(message) else { return }
    continuation.finish()
    connection.withLock { $0.value }?.close(.init(code: 1_008, reason: "the client does not keep up"))
  }
}

private struct Weak: Sendable {
  weak let value: ClientConnection?
  init(_ value: ClientConnection?) { self.value = value }
}
