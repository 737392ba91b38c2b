package import PalbeCallCore
package import PalbeFrameEncryption
import PalbeWire

/// Why a call could not be started or changed; its description is one line for a person.
package enum CallEngineError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The edge URL is not a `ws://` or `wss://` address.
  case malformedURL(String)
  /// The token is not a JWT that names a room and an identity.
  case malformedToken
  /// The host has no address, or none that this machine can reach.
  case noRoute(host: String)
  /// The server answered with this HTTP status and text.
  case refused(status: Int, body: String)
  /// No connection to the server.
  case unreachable(String)
  /// Media did not flow in time.
  case timedOut
  /// The task was cancelled, or `stop` was called.
  case cancelled
  /// The call key was refused.
  case key(FrameKeyError)
  /// A key was given to a call without end-to-end encryption.
  case encryptionIsOff
  /// A key was given to a call whose frames have another format.
  case otherEncryption
  /// The track is not published.
  case notPublished
  /// The engine was started before.
  case alreadyStarted
  /// The call is over, or has not begun.
  case notConnected
  /// The session ended before media could flow.
  case ended(CallEndReason)
  /// The machine lacks something, or a codec refused its configuration.
  case system(String)

  package var description: String {
    switch self {
    case .malformedURL(let url): "not a ws:// or wss:// address: '\(printable(url))'"
    case .malformedToken: "the token is not a JWT that names a room and an identity"
    case .noRoute(let host): "no route to '\(printable(host))'"
    case .refused(let status, let body):
      (status == 401 || status == 403
        ? "the server refused the token with HTTP \(status)" : "the server answered HTTP \(status)")
        + (body.isEmpty ? "" : ": \(Self.line(body))")
    case .unreachable(let reason): "cannot reach the server: \(Self.line(reason))"
    case .timedOut: "media did not flow in time"
    case .cancelled: "cancelled"
    case .key(.wrongLength(let expected, let got)): "a call key has \(expected) bytes, not \(got)"
    case .key(.retiredKey): "this call key was replaced before and is refused"
    case .key(.roomReused): "this room already served another call under this key"
    case .key(let error): "the call key was refused: \(error)"
    case .encryptionIsOff: "this call has no end-to-end encryption"
    case .otherEncryption: "this call's frames are encrypted in another format"
    case .notPublished: "the track is not published"
    case .alreadyStarted: "the call was started before"
    case .notConnected: "not connected"
    case .ended(let reason): "the call ended before media could flow: \(Self.words(reason))"
    case .system(let text): text
    }
  }

  private static func line(_ text: String) -> String {
    printable(text.prefix(300).split(whereSeparator: \.isNewline).joined(separator: " "))
  }

  /// An end reason in words.
  package static func words(_ reason: CallEndReason) -> String {
    switch reason {
    case .left: "left"
    case .server(let code): serverWords(code)
    case .connectionLost: "the media path was lost"
    case .signalingLost: "the signaling link was lost"
    case .protocolViolation: "the server broke the protocol"
    }
  }

  /// LiveKit's DisconnectReason in words.
  private static func serverWords(_ code: Int32) -> String {
    switch code {
    case 2: "someone joined with the same identity"
    case 3: "the server is shutting down"
    case 4: "a moderator removed this participant"
    case 5, 10: "the room was closed"
    case 14: "the server heard nothing for too long"
    case 15: "the server could not set up media"
    default: "the server ended it (reason \(code))"
    }
  }
}
