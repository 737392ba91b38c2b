import CPalbeWebSockets
import PalbeEventLoop
import PalbeUnits

/// Bodies that are never whole in memory: a piece is asked for when the one before is gone.
///
/// A client that does not take what it asked for is let go after `WebServerLimits.streamTimeout`; `BodyPace` looks after one that
/// sends.
extension ServerService {
  private static let pieceByteCount = 65_536
  /// Requests that wait for a streamed answer before them.
  private static let pipelinedCount = 4

  // MARK: Requests

  /// A sink takes the body that comes.
  func beginUpload(
    _ identity: OpaquePointer, _ connection: ServerConnection, _ sink: any HTTPBodySink,
    _ responder: HTTPResponder, id: UInt64
  ) -> Int32 {
    connection.upload = BodyUpload(sink: sink)
    connection.requestID = id
    connection.responder = responder
    waiting[id] = identity
    if let response = responder.takeOrDefer() {
      connection.answer = response
      palbe_lws_call_after(identity, 1)
    }
    return 0
  }

  func uploadReceived(
    _ identity: OpaquePointer, _ connection: ServerConnection, _ bytes: UnsafeRawBufferPointer
  ) -> Int32 {
    let goesOn = connection.upload?.sink.received(Array(bytes)) != false
    paced(identity, connection, bytes.count)
    guard !goesOn else { return 0 }
    connection.upload?.isPaused = true
    connection.pace?.pause()
    lws_rx_flow_control(identity, 0)
    // The client waits for us: nothing is late.
    palbe_lws_keep(identity)
    return 0
  }

  func uploadCompleted(_ identity: OpaquePointer, _ connection: ServerConnection) -> Int32 {
    connection.upload?.isComplete = true
    lws_rx_flow_control(identity, 0)
    if connection.answer == nil {
      palbe_lws_call_after(identity, limits.responseTimeout.nanoseconds / 1_000)
    }
    connection.upload?.sink.completed()
    return 0
  }

  /// The body's reading goes on, as the sink asked; a complete one's answer is still waited for.
  private func resumeUpload(_ identity: OpaquePointer, _ connection: ServerConnection) {
    guard let upload = connection.upload, upload.isPaused else { return }
    connection.upload?.isPaused = false
    guard !upload.isComplete else { return }
    connection.pace?.resume(at: MonotonicClock.now())
    lws_rx_flow_control(identity, 1)
    palbe_lws_await_body(identity, Int32(clamping: limits.streamTimeout.wholeSeconds))
  }

  /// What another thread has told of bodies.
  func streamsChanged() {
    for id in link.takeChangedStreams() {
      if let identity = waiting[id], let connection = connections[identity] {
        resumeUpload(identity, connection)
      }
      if let identity = downloads[id] { lws_callback_on_writable(identity) }
    }
  }

  // MARK: Answers

  /// Writes the head of an answer whose body comes from a source.
  func beginDownload(
    _ identity: OpaquePointer, _ connection: ServerConnection, _ response: HTTPResponse,
    _ source: any HTTPBodySource
  ) -> Int32 {
    let head = response.serialized(
      omittingBody: true, keepsAlive: connection.mayStayOpen, common: limits.commonHeaders)
    noteReadCount(identity, connection)
    guard writeBytes(identity, head, LWS_WRITE_HTTP_HEADERS) else {
      source.closed()
      return -1
    }
    requestCount += 1
    downloads[requestCount] = identity
    connection.download = BodyDownload(
      id: requestCount, source: source, remaining: connection.omitsBody ? 0 : response.sourceByteCount)
    return pieceWritten(identity, connection)
  }

  /// Ends an answer whose last byte is out: a client that has all of it may ask again before any other news comes.
  private func pieceWritten(_ identity: OpaquePointer, _ connection: ServerConnection) -> Int32 {
    if connection.download?.remaining == 0, palbe_lws_has_unsent(identity) == 0 {
      return endDownload(identity, connection)
    }
    palbe_lws_kill_after(identity, Int32(clamping: limits.streamTimeout.wholeSeconds))
    lws_callback_on_writable(identity)
    return 0
  }

  /// A request that comes while an answer's body is on its way: the library gives no news of a socket that takes more without
  /// reading from it too. It waits for its turn; one with a body would have to be read now.
  func keepForLater(_ identity: OpaquePointer, _ connection: ServerConnection, path: UnsafeRawBufferPointer)
    -> Int32
  {
    guard gate.admitsRequest(from: connection.peer), connection.pipelined.count < Self.pipelinedCount else {
      return -1
    }
    let reader = RequestReader(identity, limits, peer: connection.peer)
    let request = reader.read(path: path)
    guard ["GET", "HEAD", "DELETE", "OPTIONS"].contains(request.method),
      (request.header("content-length") ?? "0") == "0", request.header("transfer-encoding") == nil
    else { return -1 }
    connection.pipelined.append((request, reader.wantsToStay))
    return 0
  }

  /// The socket has taken all that was written.
  func continueDownload(_ identity: OpaquePointer) -> Int32 {
    guard let connection = connections[identity], let download = connection.download else { return 0 }
    guard palbe_lws_has_unsent(identity) == 0 else {
      lws_callback_on_writable(identity)
      return 0
    }
    guard download.remaining > 0 else { return endDownload(identity, connection) }
    let count = Int(min(Int64(Self.pieceByteCount), download.remaining))
    switch download.source.next(atMost: count, ready: { [link] in link.streamChanged(download.id) }) {
    case .bytes(let bytes):
      noteReadCount(identity, connection)
      guard !bytes.isEmpty, bytes.count <= count, writeBytes(identity, bytes, LWS_WRITE_HTTP) else {
        return -1
      }
      connection.download?.remaining -= Int64(bytes.count)
      return pieceWritten(identity, connection)
    case .later:
      // The client waits for us.
      palbe_lws_keep(identity)
      return 0
    case .failed: return -1
    }
  }

  private func endDownload(_ identity: OpaquePointer, _ connection: ServerConnection) -> Int32 {
    forgetDownload(connection)
    palbe_lws_keep(identity)
    guard connection.mayStayOpen else { return -1 }
    return nextRequest(identity, connection)
  }

  /// The connection's streams end with it.
  func forgetStreams(_ connection: ServerConnection) {
    forgetDownload(connection)
    forgetUpload(connection)
  }

  func forgetUpload(_ connection: ServerConnection) {
    if let upload = connection.upload.take(), !upload.isComplete { upload.sink.aborted() }
  }

  private func forgetDownload(_ connection: ServerConnection) {
    guard let download = connection.download.take() else { return }
    downloads[download.id] = nil
    download.source.closed()
  }
}
