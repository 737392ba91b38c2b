import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeWebServer
import PalbeWire

/// Why somebody may not join, as the HTTP answer that says so.
@_spi(Testing) public struct JoinRefusal: Error, Equatable {
  var status: Int
  var reason: String

  static func unauthorized(_ reason: String) -> JoinRefusal { JoinRefusal(status: 401, reason: reason) }
  static func unavailable(_ reason: String) -> JoinRefusal { JoinRefusal(status: 503, reason: reason) }
  static func badRequest(_ reason: String) -> JoinRefusal { JoinRefusal(status: 400, reason: reason) }
}

/// Decides from an HTTP request alone who may join which room, before its WebSocket is accepted.
///
/// The rules, in order; each has a row in the table of `JoinResolverTests`:
/// 1. The token is a Bearer in the `Authorization` header if there is one, else the item `access_token`; 401.
/// 2. Signature, algorithm and validity hold; 401 (`AccessToken`).
/// 3. The grant allows to join a room; 401.
/// 4. There is an identity, and it has at most 256 bytes; 400.
/// 5. There is a room name, and it has at most 256 bytes; 400.
/// 6. On `/rtc` without it the query items say the same, and the session has two connections (`QueryJoin`).
///    Else `join_request` is base64url of a `WrappedJoinRequest`, plain or gzip, at most 1 MiB decompressed; 400.
@_spi(Testing) public struct JoinResolver: Sendable {
  static let nameByteLimit = 256
  @_spi(Testing) public static let joinRequestByteLimit = 1 << 20

  /// API key name to secret.
  var keys: [String: String]

  /// - Parameter now: seconds since 1970.
  func resolve(_ request: HTTPRequest, now: Int64) throws(JoinRefusal) -> JoinDetails {
    let token = try AccessToken(of: request, keys: keys, now: now)
    guard token.video.roomJoin else { throw .unauthorized("the token does not grant to join a room") }
    guard !token.identity.isEmpty else { throw .badRequest("the token has no identity") }
    guard token.identity.utf8.count <= Self.nameByteLimit else {
      throw .badRequest("the identity is longer than \(Self.nameByteLimit) bytes")
    }
    guard !token.video.room.isEmpty else { throw .badRequest("the token names no room") }
    guard token.video.room.utf8.count <= Self.nameByteLimit else {
      throw .badRequest("the room name is longer than \(Self.nameByteLimit) bytes")
    }
    let query = QueryJoin(request)
    if let query, request.query("join_request") == nil {
      var details = JoinDetails(grant: token.grant, request: try query.joinRequest())
      details.usesTwoConnections = true
      return details
    }
    guard let text = request.query("join_request"), !text.isEmpty else {
      throw .badRequest("join_request is missing")
    }
    return JoinDetails(grant: token.grant, request: try Self.decode(text))
  }

  /// Reads the query item, its percent-encoding already undone.
  @_spi(Testing) public static func decode(_ text: String) throws(JoinRefusal) -> LiveKit.JoinRequest {
    guard let bytes = Base64.decode(text, alphabet: .url) else {
      throw .badRequest("join_request is not base64url")
    }
    let wrapped: LiveKit.WrappedJoinRequest = try read(bytes)
    return try read(try unpacked(wrapped))
  }

  private static func read<Message: ProtobufMessage>(_ bytes: [UInt8]) throws(JoinRefusal) -> Message {
    do throws(ProtobufError) { return try Message(serialized: bytes.span) } catch {
      throw .badRequest("join_request is malformed")
    }
  }

  private static func unpacked(_ wrapped: LiveKit.WrappedJoinRequest) throws(JoinRefusal) -> [UInt8] {
    switch wrapped.compression {
    case .none: return wrapped.joinRequest
    case .gzip:
      do throws(GunzipError) {
        return try gunzip(wrapped.joinRequest, limit: joinRequestByteLimit)
      } catch .tooLarge {
        throw .badRequest("join_request is larger than \(joinRequestByteLimit) bytes")
      } catch {
        throw .badRequest("join_request is not gzip")
      }
    default: throw .badRequest("join_request is compressed in an unknown way")
    }
  }
}
