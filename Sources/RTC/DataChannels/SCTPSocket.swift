import CPalbeUSRSCTP
import PalbeUnits

/// One socket of usrsctp's with at most one association on it. Closing it aborts what is left.
@safe struct SCTPSocket: ~Copyable {
  /// What `receive` found.
  enum Item {
    case data(count: Int, isEnd: Bool, stream: UInt16, kind: UInt32)
    case change(association: UInt32, state: UInt16, error: UInt16, outbound: Int, inbound: Int)
    /// The numbers of the streams stand at the start of the buffer, two bytes each.
    case streamsReset(count: Int, flags: UInt16)
    case other
  }

  /// Times of retransmission. WebRTC's other implementations use the same; RFC 9260's second is long for a
  /// call.
  private static let initialTimeout: UInt32 = 500
  private static let shortestTimeout: UInt32 = 400
  /// A call that was cut for a while goes on soon after.
  private static let longestTimeout: UInt32 = 2_000
  /// With these times, a peer is given up after about 40 s. ICE notices earlier.
  private static let retransmissions: UInt16 = 20
  /// Tries when a socket of an earlier association still holds a number.
  private static let bindTries = 8

  let slot: Int
  private let handle: OpaquePointer

  /// A bound socket whose datagrams go to `outgoing`.
  init(configuration: SCTPConfiguration, outgoing: DatagramQueue) throws(SCTPError) {
    var options = palbe_sctp_options()
    options.send_buffer = UInt32(configuration.sendBufferSize)
    options.receive_buffer = UInt32(configuration.receiveBufferSize)
    options.streams = UInt16(configuration.streamCount)
    options.packet_limit = UInt32(configuration.datagramSize)
    options.rto_initial = Self.initialTimeout
    options.rto_min = Self.shortestTimeout
    options.rto_max = Self.longestTimeout
    options.retransmissions = Self.retransmissions
    guard let handle = unsafe palbe_sctp_socket() else { throw .setUp(code: ENOMEM) }
    var code = unsafe palbe_sctp_configure(handle, &options)
    var slot: Int?
    var tries = Self.bindTries
    while code == 0 {
      guard let number = SCTPSlots.shared.take(outgoing) else {
        code = -EADDRNOTAVAIL
        break
      }
      code = unsafe palbe_sctp_bind(handle, SCTPSlots.address(number), configuration.port)
      if code == 0 {
        slot = number
        break
      }
      SCTPSlots.shared.giveBack(number)
      tries -= 1
      if code == -EADDRINUSE, tries > 0 { code = 0 }
    }
    guard code == 0, let slot else {
      unsafe usrsctp_close(handle)
      throw .setUp(code: -code)
    }
    self.slot = slot
    unsafe self.handle = handle
  }

  /// Sends the INIT, or waits for one.
  func begin(role: SCTPRole, port: UInt16) throws(SCTPError) {
    let argument = unsafe UnsafeMutableRawPointer(bitPattern: SCTPSlots.address(slot))
    unsafe usrsctp_set_upcall(handle, SCTPSlots.upcall, argument)
    let code = unsafe palbe_sctp_begin(handle, SCTPSlots.address(slot), port, role == .active ? 1 : 0)
    if code != 0 { throw .setUp(code: -code) }
  }

  deinit {
    // The ABORT still finds the queue; nothing after it does.
    unsafe usrsctp_close(handle)
    SCTPSlots.shared.giveBack(slot)
  }

  /// Feeds a datagram of the peer's.
  func input(_ datagram: Span<UInt8>) {
    unsafe datagram.withUnsafeBytes { bytes in
      unsafe usrsctp_conninput(
        UnsafeMutableRawPointer(bitPattern: SCTPSlots.address(slot)), bytes.baseAddress, bytes.count, 0)
    }
  }

  /// Takes the next message or notification; nil without one.
  func receive(into buffer: inout [UInt8]) -> Item? {
    let item = unsafe buffer.withUnsafeMutableBufferPointer { bytes in
      unsafe palbe_sctp_receive(handle, bytes.baseAddress, bytes.count)
    }
    switch Int(item.kind) {
    case PALBE_SCTP_NOTHING: return nil
    case PALBE_SCTP_DATA:
      return .data(
        count: min(item.count, buffer.count), isEnd: item.is_end != 0, stream: item.stream, kind: item.ppid)
    case PALBE_SCTP_CHANGE:
      return .change(
        association: item.association, state: item.state, error: item.error, outbound: Int(item.outbound),
        inbound: Int(item.inbound))
    case PALBE_SCTP_RESET: return .streamsReset(count: min(item.count, buffer.count / 2), flags: item.flags)
    default: return .other
    }
  }

  /// 0, or an error number.
  func send(
    _ message: Span<UInt8>, association: UInt32, stream: UInt16, kind: UInt32, isOrdered: Bool,
    reliability: ChannelReliability
  ) -> Int32 {
    let (policy, value): (Int, UInt32) =
      switch reliability {
      case .reliable: (PALBE_SCTP_RELIABLE, 0)
      case .retransmits(let count): (PALBE_SCTP_RETRANSMITS, count)
      case .lifetime(let milliseconds): (PALBE_SCTP_LIFETIME, milliseconds)
      }
    let sent = unsafe message.withUnsafeBytes { bytes in
      unsafe palbe_sctp_send(
        handle, association, bytes.baseAddress, bytes.count, stream, kind, isOrdered ? 0 : 1, CInt(policy),
        value)
    }
    return sent < 0 ? Int32(-sent) : 0
  }

  /// Bytes that wait; 0 without an association.
  func buffered(association: UInt32) -> Int { max(0, unsafe palbe_sctp_buffered(handle, association)) }

  /// 0, or an error number.
  func resetStream(_ stream: UInt16, association: UInt32) -> Int32 {
    unsafe -palbe_sctp_reset_stream(handle, association, stream)
  }

  /// Sends what waits, then says goodbye.
  func shutDown(association: UInt32) { _ = unsafe palbe_sctp_shutdown(handle, association) }
}
