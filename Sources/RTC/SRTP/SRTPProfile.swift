/// A protection profile as DTLS-SRTP negotiates it (RFC 5764 §4.1.2, RFC 7714 §14.2).
public enum SRTPProfile: UInt16, Sendable, CaseIterable {
  /// AES-128 in counter mode, HMAC-SHA1 cut to 80 bits (RFC 3711).
  case aes128CMSHA1_80 = 1
  /// AES-128-GCM with 16-byte tags (RFC 7714).
  case aeadAES128GCM = 7
  /// AES-256-GCM with 16-byte tags (RFC 7714).
  case aeadAES256GCM = 8

  /// Bytes of a master key.
  public var masterKeyByteCount: Int { self == .aeadAES256GCM ? 32 : 16 }

  /// Bytes of a master salt.
  public var masterSaltByteCount: Int { self == .aes128CMSHA1_80 ? 14 : 12 }

  /// Bytes that protecting adds to an RTP packet.
  public var overhead: Int { tagByteCount }

  /// Bytes that protecting adds to an RTCP packet: the tag, and the word with the index.
  public var controlOverhead: Int { tagByteCount + 4 }

  var tagByteCount: Int { self == .aes128CMSHA1_80 ? 10 : 16 }
}
