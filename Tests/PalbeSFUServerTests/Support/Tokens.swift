import PalbeCrypto
import PalbeEventLoop
import PalbeLiveKit
import PalbeProtobuf
import PalbeWire

@testable import PalbeSFUServer

/// Builds tokens, the wrong ones too.
enum Tokens {
  static let key = "devkey"
  static let secret = "secret"

  static var now: Int64 { WallClock.unixSeconds }

  /// Signs any header and claims; what a hostile client could build.
  static func signed(
    header: String = #"{"alg":"HS256","typ":"JWT"}"#, claims: String, secret: String = secret
  ) -> String {
    let text =
      Base64.encode([UInt8](header.utf8), alphabet: .url, padded: false) + "."
      + Base64.encode([UInt8](claims.utf8), alphabet: .url, padded: false)
    let mac = HMAC<SHA256>.authenticationCode(for: [UInt8](text.utf8), using: [UInt8](secret.utf8))
    return text + "." + Base64.encode(mac, alphabet: .url, padded: false)
  }

  /// A token that lets `identity` into `room`.
  static func join(
    room: String, identity: String, now: Int64 = now, expiresIn seconds: Int64 = 600, secret: String = secret
  ) -> String {
    signed(
      claims: """
        {"iss":"\(key)","sub":"\(identity)","exp":\(now + seconds),"video":{"roomJoin":true,"room":"\(room)"}}
        """, secret: secret)
  }
}

/// Builds the `join_request` query item.
enum JoinRequests {
  static func request(offer: String? = nil) -> LiveKit.JoinRequest {
    var settings = LiveKit.ConnectionSettings()
    settings.autoSubscribe = true
    var request = LiveKit.JoinRequest()
    request.connectionSettings = settings
    if let offer {
      var description = LiveKit.SessionDescription()
      description.type = "offer"
      description.sdp = offer
      request.publisherOffer = description
    }
    return request
  }

  static func item(
    _ request: LiveKit.JoinRequest = request(), compressed: Bool = true, padded: Bool = true
  ) -> String {
    let plain = request.serialized()
    return item(
      compressed ? gzip(plain) : plain, compression: compressed ? .gzip : .none, padded: padded)
  }

  static func item(
    _ bytes: [UInt8], compression: LiveKit.WrappedJoinRequest.Compression, padded: Bool = true
  ) -> String {
    var wrapped = LiveKit.WrappedJoinRequest()
    wrapped.compression = compression
    wrapped.joinRequest = bytes
    return Base64.encode(wrapped.serialized(), alphabet: .url, padded: padded)
  }

  /// As a client that escapes everything sends it.
  static func percentEncoded(_ text: String) -> String {
    text.utf8.map { byte in
      let hex = String(byte, radix: 16)
      return "%" + (hex.count == 1 ? "0" + hex : hex)
    }.joined()
  }
}
