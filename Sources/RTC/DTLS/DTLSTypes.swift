/// Which side of the handshake an endpoint is (`a=setup`, RFC 8842).
public enum DTLSRole: Sendable, BitwiseCopyable {
  /// `active`: sends the ClientHello.
  case client
  /// `passive`: waits for it, and picks the SRTP profile.
  case server
}

/// Where an endpoint stands.
public enum DTLSState: Equatable, Sendable {
  /// Not started.
  case new
  /// Flights go back and forth.
  case handshaking
  /// Keys can be exported, data can be sent. The peer's fingerprint is still the caller's to compare.
  case connected
  /// Either side sent close_notify.
  case closed
  /// For good, because of this.
  case failed(DTLSError)
}

/// Why an endpoint cannot go on, or a call was refused.
public enum DTLSError: Error, Equatable, Sendable {
  /// The peer did not answer any of about a dozen retransmissions.
  case timeout
  /// The handshake failed or the peer sent a fatal alert; OpenSSL's error code.
  case protocolFailure(code: UInt)
  /// The peer does not bind its master secret to the handshake (RFC 7627), as every WebRTC endpoint does.
  case noExtendedMasterSecret
  /// The call needs a connected endpoint.
  case notConnected
  /// Neither use_srtp profile of the peer's is one of ours, so there are no SRTP keys.
  case noSRTPProfile
  /// More bytes than one datagram of this endpoint holds.
  case tooLong(count: Int, limit: Int)
  /// OpenSSL would not make or set up an object; its error code.
  case setUp(code: UInt)
}

/// SRTP protection profiles by their number in use_srtp (RFC 5764 §4.1.2, RFC 7714 §14.2), cheapest first.
enum SRTPProfileName {
  static func openSSL(_ profile: UInt16) -> String? {
    switch profile {
    case 1: "SRTP_AES128_CM_SHA1_80"
    case 7: "SRTP_AEAD_AES_128_GCM"
    case 8: "SRTP_AEAD_AES_256_GCM"
    default: nil
    }
  }

  /// Bytes of master key and master salt.
  static func lengths(_ profile: UInt16) -> (key: Int, salt: Int)? {
    switch profile {
    case 1: (16, 14)
    case 7: (16, 12)
    case 8: (32, 12)
    default: nil
    }
  }
}
