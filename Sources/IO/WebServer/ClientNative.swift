import CPalbeWebSockets
import PalbeUnits

/// Connections over TLS, whose HTTP and frames are the library's. Of a refusal it gives the status, not the
/// body.
extension ClientLoop {
  /// Nil for what is the same for all connections.
  func handleNative(
    _ reason: lws_callback_reasons, _ link: ClientLink, _ identity: OpaquePointer,
    _ input: UnsafeRawBufferPointer
  ) -> Int32? {
    switch reason {
    case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER: return appendHeaders(link, input)
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
      let status = Int(lws_http_client_http_response(identity))
      guard (200...599).contains(status) else { return nil }
      link.connection.settle(.failure(.refused(status: status, body: "")))
      finish(link, failure: "")
      return 0
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
      // The time-out or the cancellation may have been first.
      guard link.connection.settle(.success(())) else { return -1 }
      link.hasBegun = true
      link.identity = identity
      link.phase = .native([])
      link.connection.handler?.opened()
      link.lastHeard = lws_now_usecs()
      schedule(link, identity)
      lws_callback_on_writable(identity)
      return 0
    case LWS_CALLBACK_CLIENT_RECEIVE: return receive(link, identity, input)
    case LWS_CALLBACK_CLIENT_RECEIVE_PONG:
      link.lastHeard = lws_now_usecs()
      return 0
    case LWS_CALLBACK_CLIENT_WRITEABLE: return write(link, identity)
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
      link.closure = WebSocketClosure(payload: input)
      return 0
    case LWS_CALLBACK_TIMER: return tick(link, identity)
    case LWS_CALLBACK_CLIENT_CLOSED:
      finish(link, failure: "")
      return 0
    case LWS_CALLBACK_WSI_DESTROY: return nil
    default: return 0
    }
  }

  /// `input` is a pointer to where headers go, and the room that is left there.
  ///
  /// The library cuts a long target off in silence, so it is given "/" and the target is put in here.
  private func appendHeaders(_ link: ClientLink, _ input: UnsafeRawBufferPointer) -> Int32 {
    guard let base = input.baseAddress else { return -1 }
    let cursor = UnsafeMutableRawPointer(mutating: base)
      .assumingMemoryBound(to: UnsafeMutablePointer<UInt8>.self)
    let more = Array((link.connection.url.target.dropFirst() + " HTTP/1.1\r\n").utf8)
    let lines = Array(link.connection.headerLines.utf8)
    guard more.count + lines.count < input.count else { return -1 }
    // The request so far begins with this line, at most some hundred bytes back.
    let start = Array("GET / HTTP/1.1\r\n".utf8)
    var head = cursor.pointee - start.count
    var steps = 0
    while !UnsafeBufferPointer(start: head, count: start.count).elementsEqual(start) {
      steps += 1
      guard steps < 1_024 else { return -1 }
      head -= 1
    }
    let rest = Array(
      UnsafeBufferPointer(start: head + start.count, count: cursor.pointee - head - start.count))
    let bytes = more + rest + lines
    (head + 5).update(from: bytes, count: bytes.count)
    cursor.pointee = head + 5 + bytes.count
    return 0
  }

  private func receive(_ link: ClientLink, _ identity: OpaquePointer, _ input: UnsafeRawBufferPointer)
    -> Int32
  {
    guard case .native(var message) = link.phase else { return 0 }
    link.lastHeard = lws_now_usecs()
    link.phase = .ended
    if lws_is_first_fragment(identity) != 0 { message = [] }
    guard message.count + input.count <= link.connection.options.messageByteCount else {
      return fail(link, identity, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE)
    }
    message.append(contentsOf: input)
    guard lws_is_final_fragment(identity) != 0 else {
      link.phase = .native(message)
      return 0
    }
    if lws_frame_is_binary(identity) != 0 {
      link.connection.handler?.received(binary: message)
    } else {
      guard let text = String(validating: message, as: UTF8.self) else {
        return fail(link, identity, LWS_CLOSE_STATUS_INVALID_PAYLOAD)
      }
      link.connection.handler?.received(text: text)
    }
    link.phase = .native([])
    return 0
  }

  private func fail(_ link: ClientLink, _ identity: OpaquePointer, _ status: lws_close_status) -> Int32 {
    link.closure = WebSocketClosure(code: UInt16(truncatingIfNeeded: status.rawValue))
    lws_close_reason(identity, status, nil, 0)
    return -1
  }

  private func write(_ link: ClientLink, _ identity: OpaquePointer) -> Int32 {
    guard case .native = link.phase else { return 0 }
    if link.owesPing {
      link.owesPing = false
      guard writeBytes(identity, [], LWS_WRITE_PING) else { return -1 }
      lws_callback_on_writable(identity)
      return 0
    }
    let (message, close) = link.connection.withQueue { queue in
      let message = queue.next()
      return (message, message == nil ? queue.close : nil)
    }
    switch message {
    case .binary(let bytes):
      guard writeBytes(identity, bytes, LWS_WRITE_BINARY) else { return -1 }
    case .text(let text):
      guard writeBytes(identity, Array(text.utf8), LWS_WRITE_TEXT) else { return -1 }
    case nil:
      guard let close else { return 0 }
      var reason = Array(close.reason.utf8.prefix(123))
      lws_close_reason(identity, lws_close_status(UInt32(close.code)), &reason, reason.count)
      link.closure = WebSocketClosure(code: close.code, reason: close.reason)
      return -1
    }
    lws_callback_on_writable(identity)
    return 0
  }

  private func tick(_ link: ClientLink, _ identity: OpaquePointer) -> Int32 {
    guard case .native = link.phase else { return 0 }
    let silence = lws_now_usecs() - link.lastHeard
    if silence >= link.connection.options.silenceTimeout.wholeMicroseconds { return -1 }
    if silence >= link.connection.options.pingInterval.wholeMicroseconds {
      link.owesPing = true
      lws_callback_on_writable(identity)
    }
    schedule(link, identity)
    return 0
  }
}
