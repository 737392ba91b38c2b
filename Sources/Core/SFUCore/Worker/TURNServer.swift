import PalbeCrypto
import PalbeLiveKit
import PalbeProtobuf
public import PalbeUnits
import PalbeWire

/// A TURN server that shares a secret with us (coturn's `use-auth-secret`).
public struct TURNServer: Sendable, Equatable {
  /// RFC 7065.
  public var url: String
  public var secret: String
  /// How long the credentials of one participant are valid; a resumed session gets new ones.
  public var lifetime: TimeDelta

  /// A server.
  public init(url: String, secret: String, lifetime: TimeDelta) {
    self.url = url
    self.secret = secret
    self.lifetime = lifetime
  }

  /// A name and a password of the participant's own: "expiry:sid" and the base64 of its HMAC-SHA1 (livekit-protocol 2, TURN
  /// credentials; draft-uberti-behave-turn-rest-00).
  func credentials(for sid: String, unixSeconds now: Int64) -> LiveKit.ICEServer {
    let username = "\(now + lifetime.nanoseconds / 1_000_000_000):\(sid)"
    let code = HMAC<SHA1>.authenticationCode(for: [UInt8](username.utf8), using: [UInt8](secret.utf8))
    return .with {
      $0.urls = [url]
      $0.username = username
      $0.credential = Base64.encode(code)
    }
  }
}

extension WorkerContext {
  /// What a participant may use to get here.
  func iceServers(for participant: Participant) -> [LiveKit.ICEServer] {
    let seconds = clock.unixMilliseconds(at: now) / 1_000
    return configuration.iceServers
      + configuration.turnServers.map { $0.credentials(for: participant.sid, unixSeconds: seconds) }
  }
}
