import Foundation
public import PalbeLiveKit
import PalbeWebTokens

/// A token with which an operator calls the RoomService.
public enum OperatorToken {
  /// Seconds that it is valid: one call.
  static let lifetime: Int64 = 60

  private struct Claims: Encodable {
    struct Video: Encodable {
      var roomCreate: Bool?
      var roomList: Bool?
      var roomAdmin: Bool?
      var room: String?
    }
    var iss: String
    var nbf: Int64
    var exp: Int64
    var video: Video
  }

  /// Grants one call, and no more than it.
  ///
  /// - Parameters:
  ///   - room: the room that the call names.
  ///   - now: seconds since 1970.
  /// - Returns: nil for a call that needs more than one room, or a room that cannot be written as JSON.
  public static func token(
    for method: LiveKit.RoomServiceMethod, room: String, keyName: String, secret: String, now: Int64
  ) -> String? {
    var video = Claims.Video()
    switch method.grant {
    case .roomCreate: video.roomCreate = true
    case .roomList: video.roomList = true
    case .roomAdmin:
      video.roomAdmin = true
      video.room = room
    case .roomAdminAndDestination: return nil
    }
    let claims = Claims(iss: keyName, nbf: now, exp: now + lifetime, video: video)
    guard let body = try? JSONEncoder().encode(claims) else { return nil }
    return SignedToken.text([UInt8](body), secret: secret)
  }
}
