import CPalbeLinux
import Glibc
import PalbeUnits

/// Room for the datagrams of one `recvmmsg`: a slab of slots of equal size, allocated once.
///
/// The bytes of a datagram lie at the start of its slot and may be changed in place (decryption, header
/// rewriting).
public struct ReceiveBatch: ~Copyable, @unchecked Sendable {
  /// The most datagrams of one call.
  public let capacity: Int
  /// The bytes of a slot; a longer datagram is dropped and counted.
  public let slotByteCount: Int
  /// How many datagrams the last call received.
  public internal(set) var count = 0
  /// Datagrams dropped since `init` because they did not fit a slot.
  public internal(set) var oversizedCount: UInt64 = 0

  private static let nameByteCount = socklen_t(MemoryLayout<sockaddr_storage>.size)
  let slab: UnsafeMutablePointer<UInt8>
  let messages: UnsafeMutablePointer<palbe_mmsghdr>
  let vectors: UnsafeMutablePointer<iovec>
  let names: UnsafeMutablePointer<sockaddr_storage>

  /// - Parameter slotByteCount: at least the longest datagram expected; 2,048 holds what an Ethernet frame
  /// carries.
  public init(capacity: Int = 64, slotByteCount: Int = 2_048) {
    precondition(capacity > 0 && slotByteCount > 0)
    self.capacity = capacity
    self.slotByteCount = slotByteCount
    slab = .allocate(capacity: capacity * slotByteCount)
    slab.initialize(repeating: 0, count: capacity * slotByteCount)
    messages = .allocate(capacity: capacity)
    vectors = .allocate(capacity: capacity)
    names = .allocate(capacity: capacity)
    names.initialize(repeating: sockaddr_storage(), count: capacity)
    for index in 0..<capacity {
      (vectors + index).initialize(
        to: iovec(iov_base: slab + index * slotByteCount, iov_len: slotByteCount))
      var message = palbe_mmsghdr()
      message.msg_hdr.msg_name = UnsafeMutableRawPointer(names + index)
      message.msg_hdr.msg_namelen = Self.nameByteCount
      message.msg_hdr.msg_iov = vectors + index
      message.msg_hdr.msg_iovlen = 1
      (messages + index).initialize(to: message)
    }
  }

  deinit {
    slab.deallocate()
    messages.deallocate()
    vectors.deallocate()
    names.deallocate()
  }

  /// The length of datagram `index`; 0 for one that was dropped as oversized.
  public func byteCount(_ index: Int) -> Int {
    precondition(index >= 0 && index < count)
    return Int(messages[index].msg_len)
  }

  /// Where datagram `index` came from. An IPv4 sender is IPv4 on an IPv6 socket too.
  public func source(_ index: Int) -> SocketAddress {
    precondition(index >= 0 && index < count)
    return SocketAddress(names + index) ?? SocketAddress(ipv4: 0, 0, 0, 0, port: 0)
  }

  /// The bytes of datagram `index`.
  @_lifetime(borrow self)
  public func datagram(_ index: Int) -> Span<UInt8> {
    let span = Span(_unsafeStart: slab + index * slotByteCount, count: byteCount(index))
    return unsafe _overrideLifetime(span, borrowing: self)
  }

  /// The whole slot of datagram `index`, its bytes first: room for work in place.
  @_lifetime(&self)
  public mutating func slot(_ index: Int) -> MutableSpan<UInt8> {
    precondition(index >= 0 && index < count)
    let span = MutableSpan(_unsafeStart: slab + index * slotByteCount, count: slotByteCount)
    return unsafe _overrideLifetime(span, mutating: &self)
  }

  /// Receives what waits at `socket`, at most `capacity` datagrams.
  mutating func receive(from socket: Int32) throws(SystemError) -> Int {
    // The kernel shortens the lengths of the addresses it writes.
    for index in 0..<count { messages[index].msg_hdr.msg_namelen = Self.nameByteCount }
    count = 0
    let received = palbe_recvmmsg(socket, messages, UInt32(capacity), Int32(MSG_DONTWAIT), nil)
    guard received >= 0 else {
      // ECONNREFUSED is an ICMP answer to something sent earlier, not a fault of this socket.
      switch errno {
      case EAGAIN, EINTR, ECONNREFUSED: return 0
      default: throw SystemError(.recvmmsg)
      }
    }
    count = Int(received)
    for index in 0..<count where messages[index].msg_hdr.msg_flags & Int32(MSG_TRUNC) != 0 {
      messages[index].msg_len = 0
      oversizedCount += 1
    }
    return count
  }
}

extension SocketAddress {
  /// From the system's form; nil for another family than IPv4 and IPv6.
  package init?(_ storage: UnsafePointer<sockaddr_storage>) {
    var high: UInt64 = 0
    var low: UInt64 = 0
    var port: UInt16 = 0
    switch palbe_address_decode(storage, &high, &low, &port) {
    case 4:
      self.init(ipv6High: high, low: 0, port: port)
      family = .ipv4
    case 6: self.init(ipv6High: high, low: low, port: port)
    default: return nil
    }
  }

  /// Writes the system's form and returns its length; `mapped` for an IPv6 socket that also speaks IPv4.
  func encode(into storage: UnsafeMutablePointer<sockaddr_storage>, mapped: Bool) -> socklen_t {
    palbe_address_encode(storage, family == .ipv6 ? 1 : 0, high, low, port, mapped ? 1 : 0)
  }
}
