import CPalbeSRTP
import PalbeCrypto
import PalbeRTP
import PalbeSRTP
import PalbeUnits
import PalbeWire
import Testing

/// Bytes from hexadecimal with spaces.
func hex(_ text: String) -> [UInt8] {
  Hex.decode(text.filter { !$0.isWhitespace }) ?? []
}

/// Master keys of one session, from a seed.
struct Keys: Sendable {
  let profile: SRTPProfile
  let localKey: [UInt8]
  let localSalt: [UInt8]
  let remoteKey: [UInt8]
  let remoteSalt: [UInt8]

  init(_ profile: SRTPProfile, seed: UInt64 = 1) {
    var random = RandomSource(seed: seed)
    self.profile = profile
    localKey = random.bytes(profile.masterKeyByteCount)
    localSalt = random.bytes(profile.masterSaltByteCount)
    remoteKey = random.bytes(profile.masterKeyByteCount)
    remoteSalt = random.bytes(profile.masterSaltByteCount)
  }

  /// The session of the side whose keys are `local`.
  func session(inboundLimit: Int = SRTPSession.defaultInboundLimit) throws(SRTPError) -> SRTPSession {
    try SRTPSession(
      profile: profile, localMasterKey: localKey.span, localMasterSalt: localSalt.span,
      remoteMasterKey: remoteKey.span, remoteMasterSalt: remoteSalt.span, inboundLimit: inboundLimit)
  }

  /// The session of the other side.
  func peer(inboundLimit: Int = SRTPSession.defaultInboundLimit) throws(SRTPError) -> SRTPSession {
    try SRTPSession(
      profile: profile, localMasterKey: remoteKey.span, localMasterSalt: remoteSalt.span,
      remoteMasterKey: localKey.span, remoteMasterSalt: localSalt.span, inboundLimit: inboundLimit)
  }
}

/// What of a session is run on an array.
enum Operation { case protectRTP, unprotectRTP, protectRTCP, unprotectRTCP }

/// Runs one packet through a session, with room for its tag.
func run(
  _ operation: Operation, _ packet: [UInt8], in session: inout SRTPSession
) throws(SRTPError) -> [UInt8] {
  var buffer = packet + [UInt8](repeating: 0xee, count: 20)
  var span = buffer.mutableSpan
  let count: Int
  switch operation {
  case .protectRTP: count = try session.protectRTP(&span, count: packet.count)
  case .unprotectRTP: count = try session.unprotectRTP(&span, count: packet.count)
  case .protectRTCP: count = try session.protectRTCP(&span, count: packet.count)
  case .unprotectRTCP: count = try session.unprotectRTCP(&span, count: packet.count)
  }
  return Array(buffer[..<count])
}

/// The error of one packet; nil when there is none.
func failure(_ operation: Operation, _ packet: [UInt8], in session: inout SRTPSession) -> SRTPError? {
  do throws(SRTPError) {
    _ = try run(operation, packet, in: &session)
    return nil
  } catch { return error }
}

/// A plain RTP packet; random CSRCs, extension and payload when `random` is given.
func rtp(_ sequence: UInt16, ssrc: UInt32 = 0x1234_5678, random: inout RandomSource) -> [UInt8] {
  let csrcCount = Int.random(in: 0...3, using: &random)
  let hasExtension = Bool.random(using: &random)
  var bytes: [UInt8] = [0x80 | UInt8(csrcCount) | (hasExtension ? 0x10 : 0), 96]
  bytes += [UInt8(sequence >> 8), UInt8(sequence & 0xff)] + random.bytes(4)
  bytes += (0..<4).map { UInt8(ssrc >> (24 - 8 * UInt32($0)) & 0xff) } + random.bytes(4 * csrcCount)
  if hasExtension {
    let words = Int.random(in: 0...4, using: &random)
    bytes += [0xbe, 0xde, 0, UInt8(words)] + random.bytes(4 * words)
  }
  return bytes + random.bytes(Int.random(in: 0...1_100, using: &random))
}

/// A receiver report and more, of random length.
func rtcp(ssrc: UInt32 = 0x1234_5678, random: inout RandomSource) -> [UInt8] {
  var packets: [RTCPPacket] = [.receiverReport(ReceiverReport(ssrc: SSRC(ssrc), blocks: []))]
  for _ in 0..<Int.random(in: 0...5, using: &random) {
    packets.append(
      .pictureLossIndication(sender: SSRC(ssrc), media: SSRC(UInt32(truncatingIfNeeded: random.next()))))
  }
  return RTCPPacket.compound(packets)
}

/// libsrtp2, the reference: one context for sending and one for receiving.
final class Reference {
  private static let isReady: Bool = srtp_init() == srtp_err_status_ok
  private var sender: srtp_t?
  private var receiver: srtp_t?

  /// The other side of `keys.session()`: it sends with the remote keys and receives with the local ones. With
  /// `isPeer` false it is a twin of `keys.session()`.
  init(_ keys: Keys, isPeer: Bool) {
    precondition(Self.isReady)
    let local = keys.localKey + keys.localSalt
    let remote = keys.remoteKey + keys.remoteSalt
    sender = Self.create(keys.profile, isPeer ? remote : local, ssrc_any_outbound)
    receiver = Self.create(keys.profile, isPeer ? local : remote, ssrc_any_inbound)
  }

  deinit {
    srtp_dealloc(sender)
    srtp_dealloc(receiver)
  }

  private static func create(_ profile: SRTPProfile, _ key: [UInt8], _ type: srtp_ssrc_type_t) -> srtp_t? {
    var policy = srtp_policy_t()
    switch profile {
    case .aes128CMSHA1_80:
      srtp_crypto_policy_set_rtp_default(&policy.rtp)
      srtp_crypto_policy_set_rtcp_default(&policy.rtcp)
    case .aeadAES128GCM:
      srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp)
      srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp)
    case .aeadAES256GCM:
      srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtp)
      srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtcp)
    }
    policy.ssrc.type = type
    policy.window_size = 1_024
    var key = key
    var session: srtp_t?
    let status = key.withUnsafeMutableBufferPointer { bytes in
      policy.key = bytes.baseAddress
      return srtp_create(&session, &policy)
    }
    precondition(status == srtp_err_status_ok, "libsrtp2: \(status)")
    return session
  }

  /// Nil when libsrtp2 refuses.
  func run(_ operation: Operation, _ packet: [UInt8]) -> [UInt8]? {
    var buffer = packet + [UInt8](repeating: 0, count: 64)
    var length = Int32(packet.count)
    let status = buffer.withUnsafeMutableBytes { bytes in
      switch operation {
      case .protectRTP: srtp_protect(sender, bytes.baseAddress, &length)
      case .unprotectRTP: srtp_unprotect(receiver, bytes.baseAddress, &length)
      case .protectRTCP: srtp_protect_rtcp(sender, bytes.baseAddress, &length)
      case .unprotectRTCP: srtp_unprotect_rtcp(receiver, bytes.baseAddress, &length)
      }
    }
    return status == srtp_err_status_ok ? Array(buffer[..<Int(length)]) : nil
  }
}
