import PalbeCrypto
import PalbeRTP
import PalbeUnits
import PalbeWire

/// Protects and opens the RTP and RTCP packets of one transport (RFC 3711, RFC 7714), in place.
///
///     let count = try session.protectRTP(&buffer, count: packetByteCount)    // buffer has `overhead` bytes more
///     let count = try session.unprotectRTP(&buffer, count: datagramByteCount)
///
/// All sources share the transport's keys, as DTLS-SRTP has it. No packet of a known source causes an allocation.
///
/// ## Never twice
///
/// The nonce is made of SSRC, roll-over count and sequence number. A session remembers the last 1,024 indices of
/// each source it sends and refuses one that was used or is older: a repair goes out as the stored bytes or as RTX.
/// The state of a sending source lives as long as the session. A source that sends should start below sequence
/// number 32,768, so that the loss of its first packets cannot hide a roll-over from the receiver (RFC 3711 §3.3.1).
///
/// ## Authenticated first
///
/// What a packet claims changes nothing before its tag was checked: not the replay window, not the roll-over count,
/// not the table of sources. An unknown source that fails leaves no trace.
public struct SRTPSession: ~Copyable, Sendable {
  /// The profile in use.
  public let profile: SRTPProfile
  private var sendRTP: PacketCipher
  private var sendRTCP: PacketCipher
  private var receiveRTP: PacketCipher
  private var receiveRTCP: PacketCipher
  private var outbound: SourceTable
  private var inbound: SourceTable

  /// SSRCs that one session sends at most.
  public static let outboundLimit = 16_384
  /// The default for SSRCs that one session receives at most.
  public static let defaultInboundLimit = 64

  /// Derives the session keys.
  ///
  /// - Parameter inboundLimit: SSRCs a peer may use at the same time.
  /// - Throws: `wrongKeyLength` when a key or salt does not fit the profile.
  public init(
    profile: SRTPProfile, localMasterKey: Span<UInt8>, localMasterSalt: Span<UInt8>,
    remoteMasterKey: Span<UInt8>, remoteMasterSalt: Span<UInt8>, inboundLimit: Int = defaultInboundLimit
  ) throws(SRTPError) {
    self.init(
      profile: profile,
      sendRTP: try PacketCipher(
        SessionKeys(
          profile: profile, masterKey: localMasterKey, masterSalt: localMasterSalt, isControl: false),
        profile: profile, direction: .seal),
      sendRTCP: try PacketCipher(
        SessionKeys(
          profile: profile, masterKey: localMasterKey, masterSalt: localMasterSalt, isControl: true),
        profile: profile, direction: .seal),
      receiveRTP: try PacketCipher(
        SessionKeys(
          profile: profile, masterKey: remoteMasterKey, masterSalt: remoteMasterSalt, isControl: false),
        profile: profile, direction: .open),
      receiveRTCP: try PacketCipher(
        SessionKeys(
          profile: profile, masterKey: remoteMasterKey, masterSalt: remoteMasterSalt, isControl: true),
        profile: profile, direction: .open),
      inboundLimit: inboundLimit)
  }

  /// Derives the session keys.
  public init(
    _ material: borrowing SRTPKeyingMaterial, inboundLimit: Int = defaultInboundLimit
  ) throws(SRTPError) {
    try self.init(
      profile: material.profile, localMasterKey: material.localMasterKey.span,
      localMasterSalt: material.localMasterSalt.span, remoteMasterKey: material.remoteMasterKey.span,
      remoteMasterSalt: material.remoteMasterSalt.span, inboundLimit: inboundLimit)
  }

  /// From ciphers whose keys are given, as the vectors of RFC 7714 give them.
  package init(
    profile: SRTPProfile, sendRTP: consuming PacketCipher, sendRTCP: consuming PacketCipher,
    receiveRTP: consuming PacketCipher, receiveRTCP: consuming PacketCipher, inboundLimit: Int
  ) {
    self.profile = profile
    self.sendRTP = sendRTP
    self.sendRTCP = sendRTCP
    self.receiveRTP = receiveRTP
    self.receiveRTCP = receiveRTCP
    outbound = SourceTable(limit: Self.outboundLimit)
    inbound = SourceTable(limit: inboundLimit)
  }

  /// Protects the RTP packet in `buffer[0..<count]`, which needs `profile.overhead` bytes of room behind it.
  ///
  /// - Returns: the new length.
  /// - Throws: `sequenceReuse` for a sequence number that was protected before, or is too old to tell; then the
  ///   buffer is as it was.
  @_lifetime(buffer: copy buffer)
  public mutating func protectRTP(
    _ buffer: inout MutableSpan<UInt8>, count: Int
  ) throws(SRTPError) -> Int {
    let header = try Self.rtpHeader(buffer.span, count: count)
    let total = count + profile.tagByteCount
    guard total <= buffer.count else { throw .noRoom(needed: total, have: buffer.count) }
    let source = try Self.source(header.ssrc, in: &outbound)
    let index = outbound.states[source].rtp.index(of: header.sequenceNumber.rawValue)
    guard outbound.states[source].rtp.status(of: index) == .fresh else { throw .sequenceReuse }
    guard index < 1 << 48 else { throw .indexExhausted }
    // Used up before the cipher runs: whatever happens, it will not be used again.
    outbound.states[source].rtp.use(index)
    try sendRTP.protect(
      &buffer, header: 0..<header.headerByteCount, body: header.headerByteCount..<count, ssrc: header.ssrc,
      index: index, trailer: UInt32(truncatingIfNeeded: index >> 16), isControl: false, tagOffset: count)
    return total
  }

  /// Opens the RTP packet in `buffer[0..<count]`.
  ///
  /// - Returns: the new length.
  /// - Throws: `replayed` for a packet seen before or older than the window; `authenticationFailure` when the tag
  ///   does not match, and then the payload's bytes are undefined.
  @_lifetime(buffer: copy buffer)
  public mutating func unprotectRTP(
    _ buffer: inout MutableSpan<UInt8>, count: Int
  ) throws(SRTPError) -> Int {
    let header = try Self.rtpHeader(buffer.span, count: count)
    let end = count - profile.tagByteCount
    guard header.headerByteCount <= end else {
      throw .truncated(needed: header.headerByteCount + profile.tagByteCount, have: count)
    }
    let known = inbound.index(of: header.ssrc)
    var index = UInt64(header.sequenceNumber.rawValue)
    if let known {
      index = inbound.states[known].rtp.index(of: header.sequenceNumber.rawValue)
      guard inbound.states[known].rtp.status(of: index) == .fresh else { throw .replayed }
      guard index < 1 << 48 else { throw .indexExhausted }
    } else if inbound.isFull {
      throw .tooManySources(limit: inbound.limit)
    }
    try receiveRTP.unprotect(
      &buffer, header: 0..<header.headerByteCount, body: header.headerByteCount..<end, ssrc: header.ssrc,
      index: index, trailer: UInt32(truncatingIfNeeded: index >> 16), isControl: false, tagOffset: end)
    let source = known ?? inbound.insert(header.ssrc)
    inbound.states[source].rtp.use(index)
    return end
  }

  /// Protects the compound RTCP packet in `buffer[0..<count]`, which needs `profile.controlOverhead` bytes of room
  /// behind it. Its source is the first packet's sender.
  ///
  /// - Returns: the new length.
  @_lifetime(buffer: copy buffer)
  public mutating func protectRTCP(
    _ buffer: inout MutableSpan<UInt8>, count: Int
  ) throws(SRTPError) -> Int {
    let ssrc = try Self.rtcpSender(buffer.span, count: count)
    let total = count + profile.controlOverhead
    guard total <= buffer.count else { throw .noRoom(needed: total, have: buffer.count) }
    let source = try Self.source(ssrc, in: &outbound)
    let window = outbound.states[source].rtcp
    let index = window.isStarted ? window.highest + 1 : 0
    guard index < 1 << 31 else { throw .indexExhausted }
    outbound.states[source].rtcp.use(index)
    let word = 1 << 31 | UInt32(truncatingIfNeeded: index)
    // GCM: tag, then the word. Counter mode: the word, then the tag.
    let isGCM = profile != .aes128CMSHA1_80
    try sendRTCP.protect(
      &buffer, header: 0..<8, body: 8..<count, ssrc: ssrc, index: index, trailer: word, isControl: true,
      tagOffset: isGCM ? count : count + 4)
    buffer.store(uint32: word, at: isGCM ? count + profile.tagByteCount : count)
    return total
  }

  /// Opens the compound RTCP packet in `buffer[0..<count]`. Errors are those of `unprotectRTP`, and `unencrypted`.
  ///
  /// - Returns: the new length.
  @_lifetime(buffer: copy buffer)
  public mutating func unprotectRTCP(
    _ buffer: inout MutableSpan<UInt8>, count: Int
  ) throws(SRTPError) -> Int {
    let ssrc = try Self.rtcpSender(buffer.span, count: count)
    let end = count - profile.controlOverhead
    guard end >= 8 else { throw .truncated(needed: 8 + profile.controlOverhead, have: count) }
    let isGCM = profile != .aes128CMSHA1_80
    let word = buffer.span.uint32(at: isGCM ? count - 4 : end)
    guard word >> 31 == 1 else { throw .unencrypted }
    let index = UInt64(word & 0x7fff_ffff)
    let known = inbound.index(of: ssrc)
    if let known {
      guard inbound.states[known].rtcp.status(of: index) == .fresh else { throw .replayed }
    } else if inbound.isFull {
      throw .tooManySources(limit: inbound.limit)
    }
    try receiveRTCP.unprotect(
      &buffer, header: 0..<8, body: 8..<end, ssrc: ssrc, index: index, trailer: word, isControl: true,
      tagOffset: isGCM ? end : end + 4)
    let source = known ?? inbound.insert(ssrc)
    inbound.states[source].rtcp.use(index)
    return end
  }

  /// Forgets a source that the peer sends no more, to make room for another.
  ///
  /// Its old packets could then be replayed: the owner must not take media of that SSRC any more.
  public mutating func forgetRemoteSource(_ ssrc: SSRC) { inbound.remove(ssrc) }

  /// SSRCs received so far and not forgotten.
  public var remoteSourceCount: Int { inbound.states.count }

  /// The highest index received of a source: roll-over count and sequence number. Nil when none came.
  public func extendedSequence(remote ssrc: SSRC) -> ExtendedSequenceNumber? {
    Self.highest(ssrc, in: inbound)
  }

  /// The highest index sent of a source. Nil when none was.
  public func extendedSequence(local ssrc: SSRC) -> ExtendedSequenceNumber? {
    Self.highest(ssrc, in: outbound)
  }

  private static func highest(_ ssrc: SSRC, in table: SourceTable) -> ExtendedSequenceNumber? {
    guard let index = table.index(of: ssrc), table.states[index].rtp.isStarted else { return nil }
    return ExtendedSequenceNumber(table.states[index].rtp.highest)
  }

  private static func source(_ ssrc: SSRC, in table: inout SourceTable) throws(SRTPError) -> Int {
    if let known = table.index(of: ssrc) { return known }
    guard !table.isFull else { throw .tooManySources(limit: table.limit) }
    return table.insert(ssrc)
  }

  private static func rtpHeader(_ buffer: Span<UInt8>, count: Int) throws(SRTPError) -> RTPHeader {
    guard count >= 0, count <= buffer.count else { throw .truncated(needed: count, have: buffer.count) }
    do throws(WireError) { return try RTPHeader.parseProtected(buffer.extracting(0..<count)) } catch {
      if case .truncated(let needed, let have) = error { throw .truncated(needed: needed, have: have) }
      throw .malformed
    }
  }

  private static func rtcpSender(_ buffer: Span<UInt8>, count: Int) throws(SRTPError) -> SSRC {
    guard count >= 8, count <= buffer.count else {
      throw .truncated(needed: max(8, count), have: buffer.count)
    }
    guard buffer[0] >> 6 == 2, isRTCP(buffer) else { throw .malformed }
    return SSRC(buffer.uint32(at: 4))
  }
}
