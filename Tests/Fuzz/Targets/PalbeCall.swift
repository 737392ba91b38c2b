@_spi(Testing) import PalbeCall
import PalbeWire

extension FuzzTarget {
  /// The input as a token, and as the payload of one. What is read names a room and somebody.
  static let tokenClaims = FuzzTarget(name: "token-claims") { bytes in
    let payload = Base64.encode(bytes, alphabet: .url, padded: false)
    for token in [String(decoding: bytes, as: UTF8.self), "e30.\(payload).c2ln"] {
      guard let claims = TokenClaims(token: token) else { continue }
      precondition(!claims.room.isEmpty && !claims.identity.isEmpty)
    }
  }

  /// The address of a call begins as the SFU's, whose host and port are usable.
  static let edgeURL = FuzzTarget(name: "edge-url") { bytes in
    let text = String(decoding: bytes, as: UTF8.self)
    guard let edge = EdgeURL(text) else { return }
    precondition(!edge.host.isEmpty && edge.port > 0)
    let signaling = edge.signalingURL(joinRequest: [0xfb, 0xff])
    // Bytes, not characters: what stands before the path may combine with its slash.
    let end = Array("/rtc/v1?join_request=-_8=".utf8)
    precondition(
      signaling.lowercased().utf8.starts(with: "ws".utf8)
        && signaling.utf8.suffix(end.count).elementsEqual(end))
  }
}
