import PalbeCrypto
import PalbeLiveKit
import PalbeProtobuf
@_spi(Testing) import PalbeSFUServer
import PalbeWire

extension FuzzTarget {
  /// No input may grow past the cap.
  static let gunzip = FuzzTarget(name: "gunzip") { bytes in
    for limit in [0, 1_000, 1 << 16] {
      guard let plain = try? PalbeSFUServer.gunzip(bytes, limit: limit) else { continue }
      precondition(plain.count <= limit, "\(plain.count) bytes above the cap of \(limit)")
    }
  }

  /// The query item as it is, and as the base64url of the input. What decodes must encode and decode again to the same.
  static let joinRequest = FuzzTarget(name: "join-request") { bytes in
    check(item: String(decoding: bytes, as: UTF8.self))
    check(item: Base64.encode(bytes, alphabet: .url))
  }

  private static func check(item: String) {
    guard let request = try? JoinResolver.decode(item) else { return }
    // Bytes, because a number that is not a number equals nothing.
    let encoded = request.serialized()
    precondition(encoded.count <= 4 * JoinResolver.joinRequestByteLimit, "the request grew")
    let wrapped = LiveKit.WrappedJoinRequest.with { $0.joinRequest = encoded }
    let again = try? JoinResolver.decode(Base64.encode(wrapped.serialized(), alphabet: .url))
    precondition(again?.serialized() == encoded, "does not round-trip")
  }

  /// The input as a token, which no key has signed, and as the claims of a token that one has.
  static let accessToken = FuzzTarget(name: "access-token") { bytes in
    let now: Int64 = 1_760_000_000
    let text = String(decoding: bytes, as: UTF8.self)
    let forged = try? AccessToken(verifying: text, keys: ["key": "a secret nobody knows"], now: now)
    precondition(forged == nil, "a token without a signature is accepted")
    let signed = ["{\"alg\":\"HS256\"}", text]
      .map { Base64.encode([UInt8]($0.utf8), alphabet: .url, padded: false) }.joined(separator: ".")
    let code = HMAC<SHA256>.authenticationCode(for: [UInt8](signed.utf8), using: [UInt8]("secret".utf8))
    let token = signed + "." + Base64.encode(code, alphabet: .url, padded: false)
    guard let good = try? AccessToken(verifying: token, keys: ["key": "secret"], now: now) else { return }
    let other = try? AccessToken(verifying: token, keys: ["key": "secrets"], now: now)
    precondition(good.identity.utf8.count <= bytes.count * 3 && other == nil)
  }
}
