import CPalbeLinux
import CPalbeWebSockets
import PalbeUnits

/// Plain requests: reading them, asking the handler, writing what it answers.
///
/// While an answer is on its way nothing more is read from the connection: the library would take the next
/// request, or the end of the body, for news. An answer from another thread is written in the connection's
/// timer callback, which also ends the wait.
extension ServerService {
  /// Longer answers end their connection, so that what the socket does not take at once needs no care.
  private static let keepAliveByteLimit = 65_536

  func request(_ identity: OpaquePointer, path: UnsafeRawBufferPointer) -> Int32 {
    guard let connection = connections[identity] else { return -1 }
    guard connection.download == nil else { return keepForLater(identity, connection, path: path) }
    leaveIdle(connection)
    connection.mayStayOpen = false
    let reader = RequestReader(identity, limits, peer: connection.peer)
    let request = reader.read(path: path)
    guard gate.admitsRequest(from: connection.peer) else {
      return refuse(identity, .tooManyRequests, request)
    }
    connection.omitsBody = request.method == "HEAD"
    guard !reader.hasSpaceBeforeColon else { return refuse(identity, .malformed, request) }
    let readCount = palbe_tcp_read_count(lws_get_socket_fd(identity), 0)
    guard !isTooLong(request, readCount - (connection.readCount ?? 0)) else {
      return refuse(identity, .headTooLarge(limit: limits.requestHeadByteCount), request)
    }
    if request.header("transfer-encoding") != nil {
      return refuse(identity, .lengthRequired, request)
    }
    if let text = request.header("content-length") {
      guard let count = HTTPRange.number(text).map({ Int($0) }) else {
        return refuse(identity, .malformedLength, request)
      }
      if count > 0 || request.method == "POST" {
        return expectBody(identity, connection, request, count, reader, readCount)
      }
    } else if ["POST", "PUT", "PATCH"].contains(request.method) {
      return refuse(identity, .lengthRequired, request)
    }
    connection.mayStayOpen = reader.wantsToStay
    return ask(identity, connection, request)
  }

  private func expectBody(
    _ identity: OpaquePointer, _ connection: ServerConnection, _ request: HTTPRequest, _ byteCount: Int,
    _ reader: RequestReader, _ readCount: Int64
  ) -> Int32 {
    guard !isPipelined(connection, readCount) else {
      return refuse(identity, .bodyTooEarly, request)
    }
    requestCount += 1
    let id = requestCount
    let responder = HTTPResponder { [link] in
      link.answered(id, $0)
    } resume: { [link] in
      link.streamChanged(id)
    }
    let decision = handler.body(of: request, byteCount: Int64(byteCount), responder: responder)
    switch decision {
    case .refuse(let refusal): return write(identity, refusal)
    case .collect where byteCount > limits.requestBodyByteCount:
      return refuse(identity, .bodyTooLarge(limit: limits.requestBodyByteCount), request)
    case .collect, .stream: break
    }
    if request.header("expect")?.lowercased() == "100-continue" {
      _ = writeBytes(identity, Array("HTTP/1.1 100 Continue\r\n\r\n".utf8), LWS_WRITE_HTTP_HEADERS)
    }
    connection.mayStayOpen = reader.wantsToStay
    connection.bodyRemaining = Int64(byteCount)
    if case .stream(let sink) = decision {
      return beginUpload(identity, connection, sink, responder, id: id)
    }
    connection.request = request
    return 0
  }

  /// Whether a request came together with the one before it. With a body that must not be: the library (4.1) then
  /// reads the body from the wrong place and turns for ever. It shows in nothing having been read since.
  private func isPipelined(_ connection: ServerConnection, _ readCount: Int64) -> Bool {
    guard let before = connection.readCount else { return false }
    return before < 0 || readCount <= before
  }

  /// Whether a head is too long: what was read of it, or with it where one read brought more, and what is known of its headers.
  private func isTooLong(_ request: HTTPRequest, _ readCount: Int64) -> Bool {
    guard readCount <= Int64(limits.requestHeadByteCount + Self.serviceByteCount) else { return true }
    let fields = request.headers + request.query
    let count = fields.reduce(request.path.utf8.count) { $0 + $1.name.utf8.count + $1.value.utf8.count }
    return count > limits.requestHeadByteCount
  }

  func body(_ identity: OpaquePointer, _ bytes: UnsafeRawBufferPointer) -> Int32 {
    guard let connection = connections[identity] else { return -1 }
    if connection.upload != nil { return uploadReceived(identity, connection, bytes) }
    guard let held = connection.request?.body.count, held + bytes.count <= limits.requestBodyByteCount
    else { return -1 }
    guard bodiesByteCount + bytes.count <= limits.bodiesByteCount else {
      guard let request = takeCollected(connection) else { return -1 }
      return refuse(identity, .tooManyBodies, request)
    }
    bodiesByteCount += bytes.count
    connection.request?.body.append(contentsOf: bytes)
    paced(identity, connection, bytes.count)
    return 0
  }

  func bodyCompleted(_ identity: OpaquePointer) -> Int32 {
    guard let connection = connections[identity] else { return -1 }
    if connection.upload != nil { return uploadCompleted(identity, connection) }
    guard let request = connection.request else { return -1 }
    connection.request = nil
    bodiesByteCount -= request.body.count
    return ask(identity, connection, request)
  }

  private func ask(
    _ identity: OpaquePointer, _ connection: ServerConnection, _ request: HTTPRequest
  ) -> Int32 {
    requestCount += 1
    let id = requestCount
    let responder = HTTPResponder { [link] in link.answered(id, $0) }
    handler.respond(to: request, with: responder)
    if let response = responder.takeOrDefer() { return write(identity, response) }
    connection.requestID = id
    connection.responder = responder
    waiting[id] = identity
    lws_rx_flow_control(identity, 0)
    // The time for the request's head is over; the answer's own is the one that counts.
    palbe_lws_keep(identity)
    palbe_lws_call_after(identity, limits.responseTimeout.nanoseconds / 1_000)
    return 0
  }

  /// The connection's timer: an answer has come or takes too long, or a body is looked after.
  func timer(_ identity: OpaquePointer) -> Int32 {
    guard let connection = connections[identity] else { return 0 }
    if connection.pace != nil, connection.answer == nil { return checkPace(identity, connection) }
    guard let id = connection.requestID else { return 0 }
    guard let response = connection.answer ?? connection.responder?.expire() else {
      // Another thread is just handing it over.
      palbe_lws_call_after(identity, 1_000)
      return 0
    }
    waiting[id] = nil
    connection.requestID = nil
    connection.responder = nil
    connection.answer = nil
    // The rest of a body that is not all there would be read as the next request.
    if let upload = connection.upload, !upload.isComplete { connection.mayStayOpen = false }
    connection.pace = nil
    forgetUpload(connection)
    palbe_lws_call_after(identity, -1)
    lws_rx_flow_control(identity, 1)
    return write(identity, response)
  }

  /// Writes an answer; the library sends what the socket does not take at once. Ends the connection unless
  /// another request may follow.
  func write(_ identity: OpaquePointer, _ response: HTTPResponse) -> Int32 {
    guard let connection = connections[identity] else { return -1 }
    if let source = response.source { return beginDownload(identity, connection, response, source) }
    let stays = connection.mayStayOpen && response.body.count <= Self.keepAliveByteLimit
    let bytes = response.serialized(
      omittingBody: connection.omitsBody, keepsAlive: stays, common: limits.commonHeaders)
    noteReadCount(identity, connection)
    guard writeBytes(identity, bytes, LWS_WRITE_HTTP_HEADERS), stays, palbe_lws_has_unsent(identity) == 0
    else { return -1 }
    return nextRequest(identity, connection)
  }

  /// The answer is on its way whole: the connection is ready for another request.
  func nextRequest(_ identity: OpaquePointer, _ connection: ServerConnection) -> Int32 {
    if !connection.pipelined.isEmpty {
      let (request, stays) = connection.pipelined.removeFirst()
      connection.omitsBody = request.method == "HEAD"
      connection.mayStayOpen = stays
      return ask(identity, connection, request)
    }
    enterKept(identity, connection)
    return lws_http_transaction_completed(identity) == 0 ? 0 : -1
  }

  /// To be called before the end of an answer is written: what comes after it may be the next request of a client that waited.
  func noteReadCount(_ identity: OpaquePointer, _ connection: ServerConnection) {
    connection.readCount = palbe_tcp_read_count(lws_get_socket_fd(identity), 1)
  }
}
