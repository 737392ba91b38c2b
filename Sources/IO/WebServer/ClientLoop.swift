import CPalbeLinux
import CPalbeWebSockets
import PalbeUnits

/// The library's one entry point for clients. Returning non-zero closes the connection.
func clientCallback(
  _ identity: OpaquePointer?, _ reason: lws_callback_reasons, _ user: UnsafeMutableRawPointer?,
  _ input: UnsafeMutableRawPointer?, _ length: Int
) -> Int32 {
  guard let identity, let context = lws_get_context(identity), let user = lws_context_user(context) else {
    return 0
  }
  let loop = Unmanaged<ClientLoop>.fromOpaque(user).takeUnretainedValue()
  if reason == LWS_CALLBACK_EVENT_WAIT_CANCELLED {
    loop.runCommands(context)
    return 0
  }
  guard let link = loop.links[UInt(bitPattern: lws_get_opaque_user_data(identity))] else { return 0 }
  return loop.handle(
    reason, link, identity, UnsafeRawBufferPointer(start: input, count: input == nil ? 0 : length))
}

extension ClientLoop {
  func runCommands(_ context: OpaquePointer) {
    for command in service?.takeCommands() ?? [] {
      switch command {
      case .connect(let connection): connect(connection, context)
      case .flush(let connection):
        guard let link = links[connection.id], let identity = link.identity else { continue }
        if connection.isAbandoned {
          palbe_lws_kill(identity)
        } else {
          switch link.phase {
          case .open, .native: lws_callback_on_writable(identity)
          case .upgrading, .closing, .ended: break
          }
        }
      }
    }
  }

  private func connect(_ connection: ClientConnection, _ context: OpaquePointer) {
    guard !connection.isAbandoned else { return connection.end(.abnormal) }
    let link = ClientLink(connection)
    links[connection.id] = link
    let url = connection.url
    let number = UnsafeMutableRawPointer(bitPattern: connection.id)
    let identity =
      url.isSecure
      ? palbe_lws_connect(context, url.host, Int32(url.port), "/", url.authority, "palbe-client", number)
      : palbe_lws_connect(context, url.host, Int32(url.port), nil, nil, "palbe-client", number)
    // The call itself may have failed the connection and called back.
    guard links[connection.id] != nil else { return }
    if let identity { link.identity = identity } else { finish(link, failure: "no connection") }
  }

  func handle(
    _ reason: lws_callback_reasons, _ link: ClientLink, _ identity: OpaquePointer,
    _ input: UnsafeRawBufferPointer
  ) -> Int32 {
    if link.connection.url.isSecure, let result = handleNative(reason, link, identity, input) {
      return result
    }
    switch reason {
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
      finish(link, failure: input.isEmpty ? "no connection" : String(decoding: input, as: UTF8.self))
      return 0
    case LWS_CALLBACK_RAW_ADOPT, LWS_CALLBACK_RAW_CONNECTED:
      begin(link, identity)
      return 0
    case LWS_CALLBACK_RAW_WRITEABLE: return write(link, identity)
    case LWS_CALLBACK_RAW_RX: return receive(link, identity, input)
    case LWS_CALLBACK_TIMER: return tick(link, identity)
    case LWS_CALLBACK_RAW_CLOSE, LWS_CALLBACK_WSI_DESTROY:
      finish(link, failure: "the connection was closed")
      return 0
    default: return 0
    }
  }

  /// The connection is gone, or never was.
  func finish(_ link: ClientLink, failure: String) {
    links[link.connection.id] = nil
    if case .upgrading(let reader) = link.phase {
      if !link.hasBegun {
        link.connection.settle(.failure(.unreachable(failure)))
      } else if case .refused(let status, let body) = reader.finish() {
        link.connection.settle(
          .failure(.refused(status: status, body: String(decoding: body, as: UTF8.self))))
      } else {
        link.connection.settle(.failure(.malformedAnswer))
      }
    }
    link.connection.end(link.closure ?? .abnormal)
  }

  // MARK: The handshake (RFC 6455 §4.1)

  private func begin(_ link: ClientLink, _ identity: OpaquePointer) {
    guard !link.hasBegun else { return }
    link.hasBegun = true
    link.identity = identity
    let key = Self.base64((0..<16).map { _ in UInt8.random(in: 0...255) })
    var hash = [UInt8](repeating: 0, count: 20)
    let text = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
    lws_SHA1(text, text.count, &hash)
    link.expectedAccept = Self.base64(hash)
    let url = link.connection.url
    var head = "GET \(url.target) HTTP/1.1\r\nHost: \(url.authority)\r\nUpgrade: websocket\r\n"
    head += "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(key)\r\n"
    head += link.connection.headerLines
    link.urgent.append(Array((head + "\r\n").utf8))
    lws_callback_on_writable(identity)
  }

  private static func base64(_ bytes: [UInt8]) -> String {
    var text = [CChar](repeating: 0, count: 64)
    let count = bytes.withUnsafeBytes { raw in
      lws_b64_encode_string(
        raw.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count), &text, Int32(text.count))
    }
    return String(decoding: text.prefix(max(0, Int(count))).map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  private func upgrade(
    _ link: ClientLink, _ identity: OpaquePointer, _ reader: UpgradeResponseReader,
    _ input: UnsafeRawBufferPointer
  ) -> Int32 {
    var reader = reader
    let outcome = reader.append(input)
    link.phase = .upgrading(reader)
    switch outcome {
    case nil: return 0
    case .refused(let status, let body):
      link.connection.settle(.failure(.refused(status: status, body: String(decoding: body, as: UTF8.self))))
      return -1
    case .malformed:
      link.connection.settle(.failure(.malformedAnswer))
      return -1
    case .upgraded(let accept, let rest):
      guard accept == link.expectedAccept else {
        link.connection.settle(.failure(.malformedAnswer))
        return -1
      }
      // The time-out or the cancellation may have been first.
      guard link.connection.settle(.success(())) else { return -1 }
      link.phase = .open(WebSocketFrameReader(messageByteLimit: link.connection.options.messageByteCount))
      link.connection.handler?.opened()
      link.lastHeard = lws_now_usecs()
      schedule(link, identity)
      lws_callback_on_writable(identity)
      return rest.withUnsafeBytes { receive(link, identity, $0) }
    }
  }

  // MARK: Reading

  private func receive(
    _ link: ClientLink, _ identity: OpaquePointer, _ input: UnsafeRawBufferPointer
  ) -> Int32 {
    link.lastHeard = lws_now_usecs()
    switch link.phase {
    case .upgrading(let reader): return upgrade(link, identity, reader, input)
    case .ended, .native: return 0
    case .open(var reader):
      link.phase = .ended
      reader.append(input)
      do throws(WebSocketFrameReader.Failure) {
        while let event = try reader.next() {
          if hear(event, link, identity) { return 0 }
        }
        link.phase = .open(reader)
      } catch {
        end(link, identity, with: WebSocketClosure(code: error.code))
      }
      return 0
    case .closing(var reader):
      link.phase = .ended
      reader.append(input)
      while let event = try? reader.next() {
        guard case .close(let closure) = event else { continue }
        link.closure = closure
        return -1
      }
      link.phase = .closing(reader)
      return 0
    }
  }

  /// True when the peer has closed.
  private func hear(
    _ event: WebSocketFrameReader.Event, _ link: ClientLink, _ identity: OpaquePointer
  ) -> Bool {
    switch event {
    case .message(.binary(let bytes)): link.connection.handler?.received(binary: bytes)
    case .message(.text(let text)): link.connection.handler?.received(text: text)
    case .pong: break
    case .ping(let payload):
      // A peer that pings without reading our pongs gets no more of them.
      guard link.urgent.count < 16 else { break }
      link.urgent.append(WebSocketFrameWriter.frame(.pong, payload, mask: .random(in: 0...UInt32.max)))
      lws_callback_on_writable(identity)
    case .close(let closure):
      end(link, identity, with: closure)
      return true
    }
    return false
  }

  /// Sends a close frame as the last thing.
  private func end(_ link: ClientLink, _ identity: OpaquePointer, with closure: WebSocketClosure) {
    link.phase = .ended
    link.closure = closure
    link.urgent.append(
      WebSocketFrameWriter.close(.init(code: closure.code, reason: ""), mask: .random(in: 0...UInt32.max)))
    link.closesAfterUrgent = true
    link.connection.withQueue { $0.end() }
    palbe_lws_kill_after(identity, 2)
    lws_callback_on_writable(identity)
  }

  // MARK: Writing

  private func write(_ link: ClientLink, _ identity: OpaquePointer) -> Int32 {
    begin(link, identity)
    if !link.urgent.isEmpty {
      guard writeBytes(identity, link.urgent.removeFirst(), LWS_WRITE_HTTP) else { return -1 }
      if link.urgent.isEmpty, link.closesAfterUrgent { return -1 }
      lws_callback_on_writable(identity)
      return 0
    }
    guard case .open(let reader) = link.phase else { return 0 }
    let (message, close) = link.connection.withQueue { queue in
      let message = queue.next()
      return (message, message == nil ? queue.close : nil)
    }
    let mask = UInt32.random(in: 0...UInt32.max)
    let frame: [UInt8]
    switch message {
    case .binary(let bytes): frame = WebSocketFrameWriter.frame(.binary, bytes, mask: mask)
    case .text(let text): frame = WebSocketFrameWriter.frame(.text, text.utf8, mask: mask)
    case nil:
      guard let close else { return 0 }
      frame = WebSocketFrameWriter.close(close, mask: mask)
      link.closure = WebSocketClosure(code: close.code, reason: close.reason)
      link.phase = .closing(reader)
      palbe_lws_kill_after(identity, 2)
    }
    guard writeBytes(identity, frame, LWS_WRITE_HTTP) else { return -1 }
    lws_callback_on_writable(identity)
    return 0
  }

  // MARK: Liveness

  func schedule(_ link: ClientLink, _ identity: OpaquePointer) {
    lws_set_timer_usecs(identity, max(1_000, link.connection.options.pingInterval.wholeMicroseconds))
  }

  private func tick(_ link: ClientLink, _ identity: OpaquePointer) -> Int32 {
    guard case .open = link.phase else { return 0 }
    let silence = lws_now_usecs() - link.lastHeard
    if silence >= link.connection.options.silenceTimeout.wholeMicroseconds { return -1 }
    if silence >= link.connection.options.pingInterval.wholeMicroseconds {
      link.urgent.append(WebSocketFrameWriter.frame(.ping, [], mask: .random(in: 0...UInt32.max)))
      lws_callback_on_writable(identity)
    }
    schedule(link, identity)
    return 0
  }
}
