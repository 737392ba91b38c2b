import PalbeUnits
import PalbeWire

/// Looks at every datagram before usrsctp does, and keeps out what a data-channel peer has no reason to send.
///
/// ## Overview
///
/// usrsctp 0.9.5 has known faults in what WebRTC never needs: restarts, collisions of two INITs, an INIT
/// among other chunks, extensions that were not negotiated. A peer is authenticated here, not trusted. So:
///
///     passive:  INIT*, COOKIE ECHO ──▶ connected ──▶ no INIT; that same COOKIE ECHO only, until a SHUTDOWN
///     active:   INIT ACK, COOKIE ACK ──▶ connected ──▶ neither; never an INIT or a COOKIE ECHO
///
/// A datagram with one bad chunk is dropped whole: no sender that keeps to RFC 9260 makes one.
struct SCTPGuard {
  /// Why a datagram was kept out.
  enum Refusal: Error, Equatable {
    case malformed
    case wrongPort
    case chunkNotWanted(UInt8)
    case parameterNotWanted(UInt16)
  }

  /// RFC 9260 §3.2, RFC 3758 §3.2, RFC 6525 §3.1.
  enum Chunk {
    static let data: UInt8 = 0
    static let initiation: UInt8 = 1
    static let initiationAcknowledgement: UInt8 = 2
    static let acknowledgement: UInt8 = 3
    static let heartbeat: UInt8 = 4
    static let heartbeatAcknowledgement: UInt8 = 5
    static let abort: UInt8 = 6
    static let shutdown: UInt8 = 7
    static let shutdownAcknowledgement: UInt8 = 8
    static let error: UInt8 = 9
    static let cookieEcho: UInt8 = 10
    static let cookieAcknowledgement: UInt8 = 11
    static let shutdownComplete: UInt8 = 14
    static let reconfiguration: UInt8 = 0x82
    static let padding: UInt8 = 0x84
    static let forwardTSN: UInt8 = 0xc0
  }

  private static let headerSize = 12
  /// Chunks of one datagram; the smallest DATA chunk takes 20 bytes.
  private static let chunkLimit = 128

  private let role: SCTPRole
  private let port: UInt16
  private let streamCount: Int
  /// The cookie that was admitted last; the accepted one once connected.
  private var cookie: [UInt8] = []
  private var isConnected = false
  private var isShutDown = false

  init(role: SCTPRole, configuration: SCTPConfiguration) {
    self.role = role
    port = configuration.port
    streamCount = configuration.streamCount
  }

  /// The handshake is done.
  mutating func connected() { isConnected = true }

  /// Either side says goodbye.
  mutating func shutDown() { isShutDown = true }

  /// Passes a datagram, or says why not.
  mutating func check(_ datagram: Span<UInt8>) throws(Refusal) {
    guard datagram.count >= Self.headerSize + 4, datagram.count & 3 == 0 else { throw .malformed }
    guard datagram.uint16(at: 0) == port, datagram.uint16(at: 2) == port else { throw .wrongPort }
    var offset = Self.headerSize
    var count = 0
    var hasData = false
    var cookieRange: Range<Int>?
    while offset < datagram.count {
      guard datagram.count - offset >= 4, count < Self.chunkLimit else { throw .malformed }
      let type = datagram[offset]
      let length = Int(datagram.uint16(at: offset + 2))
      let padded = (length + 3) & ~3
      guard length >= 4, padded <= datagram.count - offset else { throw .malformed }
      let isAlone = count == 0 && offset + padded == datagram.count
      // Control chunks come before DATA chunks (RFC 9260 §6.10).
      if type == Chunk.data { hasData = true } else if hasData { throw .malformed }
      let chunk = datagram.extracting(offset..<offset + length)
      try check(chunk, type: type, isFirst: count == 0, isAlone: isAlone)
      if type == Chunk.cookieEcho { cookieRange = offset..<offset + length }
      offset += padded
      count += 1
    }
    if let cookieRange {
      // Compared, not believed: usrsctp checks its signature.
      let echoed = [UInt8](datagram.extracting(cookieRange))
      if isConnected {
        guard echoed == cookie else { throw .chunkNotWanted(Chunk.cookieEcho) }
      } else {
        cookie = echoed
      }
    }
  }

  private mutating func check(
    _ chunk: Span<UInt8>, type: UInt8, isFirst: Bool, isAlone: Bool
  ) throws(Refusal) {
    let length = chunk.count
    switch type {
    case Chunk.data:
      guard length > 16 else { throw .malformed }
      guard isConnected || role == .active || !isFirst else { throw .chunkNotWanted(type) }
    case Chunk.initiation:
      guard role == .passive, !isConnected else { throw .chunkNotWanted(type) }
      guard isAlone else { throw .malformed }
      try checkInitiation(chunk)
    case Chunk.initiationAcknowledgement:
      guard role == .active, !isConnected else { throw .chunkNotWanted(type) }
      guard isAlone else { throw .malformed }
      try checkInitiation(chunk)
    case Chunk.cookieEcho:
      guard role == .passive, !isShutDown else { throw .chunkNotWanted(type) }
      guard isFirst, length > 4 else { throw .malformed }
    case Chunk.cookieAcknowledgement:
      guard role == .active, !isShutDown else { throw .chunkNotWanted(type) }
      guard length == 4 else { throw .malformed }
    case Chunk.acknowledgement:
      guard length >= 16 else { throw .malformed }
      let entries = Int(chunk.uint16(at: 12)) + Int(chunk.uint16(at: 14))
      guard length == 16 + 4 * entries else { throw .malformed }
    case Chunk.heartbeat, Chunk.heartbeatAcknowledgement:
      guard length >= 8 else { throw .malformed }
    case Chunk.abort, Chunk.error:
      try checkParameters(chunk.extracting(4..<length), isForbidden: { _ in false })
    case Chunk.shutdown:
      guard length == 8 else { throw .malformed }
      guard isConnected else { throw .chunkNotWanted(type) }
      isShutDown = true
    case Chunk.shutdownAcknowledgement, Chunk.shutdownComplete:
      guard length == 4 else { throw .malformed }
      guard isConnected else { throw .chunkNotWanted(type) }
      isShutDown = true
    case Chunk.forwardTSN:
      guard length >= 8, length & 3 == 0 else { throw .malformed }
    case Chunk.reconfiguration:
      guard isConnected else { throw .chunkNotWanted(type) }
      try checkReconfiguration(chunk)
    case Chunk.padding: break
    default: throw .chunkNotWanted(type)
    }
  }

  /// Fixed fields, then parameters. Addresses and NAT support (RFC 9260 §3.3.2.1) have no meaning over DTLS
  /// (RFC 8261 §5).
  private func checkInitiation(_ chunk: Span<UInt8>) throws(Refusal) {
    guard chunk.count >= 20, chunk.uint32(at: 4) != 0, chunk.uint32(at: 8) >= 1_500,
      chunk.uint16(at: 12) != 0, chunk.uint16(at: 14) != 0
    else { throw .malformed }
    try checkParameters(chunk.extracting(20..<chunk.count)) { type in
      switch type {
      case 5, 6, 11, 0xc001...0xc004, 0xc007, 0xc008: true
      default: false
      }
    }
  }

  /// RFC 6525 §4: one or two requests or answers.
  private func checkReconfiguration(_ chunk: Span<UInt8>) throws(Refusal) {
    var offset = 4
    var count = 0
    while offset < chunk.count {
      guard chunk.count - offset >= 4, count < 2 else { throw .malformed }
      let type = chunk.uint16(at: offset)
      let length = Int(chunk.uint16(at: offset + 2))
      guard length >= 4, length <= chunk.count - offset else { throw .malformed }
      switch type {
      case 13:
        guard length >= 16, length & 1 == 0, (length - 16) / 2 <= streamCount else { throw .malformed }
      case 14:
        guard length >= 8, length & 1 == 0, (length - 8) / 2 <= streamCount else { throw .malformed }
      case 16:
        guard length == 12 || length == 20 else { throw .malformed }
      case 17, 18:
        guard length == 12 else { throw .malformed }
      default: throw .parameterNotWanted(type)
      }
      offset += (length + 3) & ~3
      count += 1
    }
    guard count > 0 else { throw .malformed }
  }

  /// Type, length, value, padding: within the chunk to the last byte.
  private func checkParameters(
    _ bytes: Span<UInt8>, isForbidden: (UInt16) -> Bool
  ) throws(Refusal) {
    var offset = 0
    while offset < bytes.count {
      guard bytes.count - offset >= 4 else { throw .malformed }
      let type = bytes.uint16(at: offset)
      let length = Int(bytes.uint16(at: offset + 2))
      guard length >= 4, length <= bytes.count - offset else { throw .malformed }
      if isForbidden(type) { throw .parameterNotWanted(type) }
      offset += (length + 3) & ~3
    }
  }
}
