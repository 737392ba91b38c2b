/// Takes a request's body piece by piece, so that one of any length costs no memory. The calls come one at a time from the
/// service thread and must not block.
///
///     func received(_ piece: [UInt8]) -> Bool { disk.write(piece) { responder.resumeBody() } }
///
/// The answer goes to the `HTTPResponder` that came with the request: before the body's end it cuts the body off.
public protocol HTTPBodySink: Sendable {
  /// A piece of at most 16 KiB. False stops the reading, and with it the client, until `HTTPResponder.resumeBody`.
  func received(_ piece: [UInt8]) -> Bool
  /// That was all of it.
  func completed()
  /// The client is gone, or an answer has cut the body off; the last call.
  func aborted()
}

/// How a request's body is taken.
public enum HTTPBodyDecision: Sendable {
  /// Whole, in memory, up to `WebServerLimits.requestBodyByteCount`; then the handler is asked to respond.
  case collect
  /// Not at all: the connection ends after this answer.
  case refuse(HTTPResponse)
  /// Piece by piece, whatever its length; the sink sees to the answer.
  case stream(any HTTPBodySink)
}

/// Gives an answer's body piece by piece. The calls come one at a time from the service thread and must not block.
public protocol HTTPBodySource: Sendable {
  /// The next piece, of at most `count` bytes; asked for when the client has taken the one before.
  ///
  /// - Parameter ready: to be called, from any thread, after `later`.
  func next(atMost count: Int, ready: @escaping @Sendable () -> Void) -> HTTPBodyPiece
  /// All is sent, or the client is gone; the last call.
  func closed()
}

/// What a source has.
public enum HTTPBodyPiece: Sendable {
  /// Bytes, at least one.
  case bytes([UInt8])
  /// Nothing yet.
  case later
  /// Nothing ever: the connection is cut, which tells the client that the body is not whole.
  case failed
}

/// A request's body on its way to a sink.
struct BodyUpload {
  var sink: any HTTPBodySink
  var isPaused = false
  var isComplete = false
}

/// An answer's body on its way to the client.
struct BodyDownload {
  let id: UInt64
  var source: any HTTPBodySource
  var remaining: Int64
}
