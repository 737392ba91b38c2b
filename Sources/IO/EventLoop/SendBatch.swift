import CPalbeLinux
import Glibc
import PalbeUnits

/// Datagrams on their way to one `sendmmsg`: a slab of slots of equal size, allocated once.
///
///     var slot = batch.nextSlot()                      // write the packet in place
///     let length = try srtp.protectRTP(&slot, count: headerAndPayload)
///     batch.commit(byteCount: length, to: subscriber)
///     if batch.isFull { socket.send(&batch) }
public struct SendBatch: ~Copyable, @unchecked Sendable {
  /// The most datagrams that wait.
  public let capacity: Int
  /// The longest datagram.
  public let slotByteCount: Int
  /// Neighbours of one length to one address go to the kernel as one message (UDP_SEGMENT), which costs a
  /// fraction.
  /// Turns itself off where a network device refuses.
  public internal(set) var usesSegmentation: Bool
  /// Datagrams the kernel took since `init`.
  public internal(set) var sentCount: UInt64 = 0
  /// Datagrams the kernel refused since `init` (no route, too long): they are lost like any datagram.
  public internal(set) var failedCount: UInt64 = 0

  private var first = 0
  private var end = 0
  private let slab: UnsafeMutablePointer<UInt8>
  private let destinations: UnsafeMutablePointer<SocketAddress>
  private let messages: UnsafeMutablePointer<palbe_mmsghdr>
  private let vectors: UnsafeMutablePointer<iovec>
  private let names: UnsafeMutablePointer<sockaddr_storage>
  private let controls: UnsafeMutableRawPointer
  private let controlByteCount = palbe_segment_control_size()

  /// The kernel's limits for one segmented message.
  private static let segmentLimit = 64
  private static let segmentedByteLimit = 61_440

  /// - Parameter segmentation: begins with `usesSegmentation` on.
  public init(capacity: Int = 64, slotByteCount: Int = 2_048, segmentation: Bool = false) {
    precondition(capacity > 0 && slotByteCount > 0 && slotByteCount <= 65_535)
    self.capacity = capacity
    self.slotByteCount = slotByteCount
    usesSegmentation = segmentation
    slab = .allocate(capacity: capacity * slotByteCount)
    slab.initialize(repeating: 0, count: capacity * slotByteCount)
    destinations = .allocate(capacity: capacity)
    destinations.initialize(repeating: SocketAddress(ipv4: 0, 0, 0, 0, port: 0), count: capacity)
    messages = .allocate(capacity: capacity)
    messages.initialize(repeating: palbe_mmsghdr(), count: capacity)
    vectors = .allocate(capacity: capacity)
    vectors.initialize(repeating: iovec(), count: capacity)
    names = .allocate(capacity: capacity)
    names.initialize(repeating: sockaddr_storage(), count: capacity)
    controls = .allocate(byteCount: capacity * controlByteCount, alignment: 16)
    controls.initializeMemory(as: UInt8.self, repeating: 0, count: capacity * controlByteCount)
    for index in 0..<capacity {
      vectors[index].iov_base = UnsafeMutableRawPointer(slab + index * slotByteCount)
    }
  }

  deinit {
    slab.deallocate()
    destinations.deallocate()
    messages.deallocate()
    vectors.deallocate()
    names.deallocate()
    controls.deallocate()
  }

  /// Datagrams that wait.
  public var count: Int { end - first }
  /// Nothing waits.
  public var isEmpty: Bool { first == end }
  /// There is no free slot: send, or `removeAll`.
  public var isFull: Bool { end == capacity }

  /// The next free slot, to be written and committed; its old contents are unspecified. Traps when full.
  @_lifetime(&self)
  public mutating func nextSlot() -> MutableSpan<UInt8> {
    precondition(!isFull)
    let span = MutableSpan(_unsafeStart: slab + end * slotByteCount, count: slotByteCount)
    return unsafe _overrideLifetime(span, mutating: &self)
  }

  /// Queues the first `byteCount` bytes of the slot that `nextSlot` gave. Traps when full or longer than a
  /// slot.
  public mutating func commit(byteCount: Int, to destination: SocketAddress) {
    precondition(!isFull && byteCount >= 0 && byteCount <= slotByteCount)
    destinations[end] = destination
    vectors[end].iov_len = byteCount
    end += 1
  }

  /// Queues a copy.
  /// - Returns: false when full or longer than a slot; nothing is queued then.
  @discardableResult
  public mutating func append(_ datagram: Span<UInt8>, to destination: SocketAddress) -> Bool {
    guard !isFull, datagram.count <= slotByteCount else { return false }
    datagram.withUnsafeBufferPointer { bytes in
      if let base = bytes.baseAddress { memcpy(slab + end * slotByteCount, base, bytes.count) }
    }
    commit(byteCount: datagram.count, to: destination)
    return true
  }

  /// Forgets what waits: a late packet is worth less than the next one.
  public mutating func removeAll() {
    first = 0
    end = 0
  }

  /// Sends through `socket` until nothing waits (true) or its buffer is full (false).
  mutating func send(through socket: Int32, mapped: Bool) -> Bool {
    while first < end {
      let messageCount = buildMessages(mapped: mapped)
      let sent = palbe_sendmmsg(socket, messages, UInt32(messageCount), Int32(MSG_DONTWAIT))
      if sent > 0 {
        for index in 0..<Int(sent) {
          let segments = Int(messages[index].msg_hdr.msg_iovlen)
          sentCount += UInt64(segments)
          first += segments
        }
        continue
      }
      switch errno {
      case EAGAIN, ENOBUFS: return false
      case EINTR, ECONNREFUSED: continue
      case EIO, EINVAL, EMSGSIZE, EOPNOTSUPP:
        if messages[0].msg_hdr.msg_iovlen > 1 {
          usesSegmentation = false
          continue
        }
        fallthrough
      default:
        let segments = Int(messages[0].msg_hdr.msg_iovlen)
        failedCount += UInt64(segments)
        first += segments
      }
    }
    removeAll()
    return true
  }

  /// Describes what waits to the kernel; returns the number of messages.
  private mutating func buildMessages(mapped: Bool) -> Int {
    var built = 0
    var index = first
    while index < end {
      let segments = usesSegmentation ? runLength(from: index) : 1
      var header = msghdr()
      header.msg_name = UnsafeMutableRawPointer(names + built)
      header.msg_namelen = destinations[index].encode(into: names + built, mapped: mapped)
      header.msg_iov = vectors + index
      header.msg_iovlen = segments
      if segments > 1 {
        palbe_segment_control_set(
          &header, controls + built * controlByteCount, UInt16(truncatingIfNeeded: vectors[index].iov_len))
      }
      messages[built].msg_hdr = header
      built += 1
      index += segments
    }
    return built
  }

  /// How many datagrams from `start` on can be one message: one address, one length, of which only the last
  /// is shorter.
  private func runLength(from start: Int) -> Int {
    let size = vectors[start].iov_len
    var total = size
    var next = start + 1
    guard size > 0 else { return 1 }
    while next < end, next - start < Self.segmentLimit, destinations[next] == destinations[start] {
      let length = vectors[next].iov_len
      guard length > 0, length <= size, total + length <= Self.segmentedByteLimit else { break }
      total += length
      next += 1
      if length < size { break }
    }
    return next - start
  }
}
