import PalbeEventLoop
import PalbeICE
import PalbeUnits

/// A worker's ICE-TCP connections (RFC 6544): who cannot send UDP connects, and sends the same datagrams framed.
///
/// ## Overview
///
///     accepted ── valid check within 5 s ──▶ served ── participant gone, no consent, stalled for 10 s ──▶ closed
///        └────────── nothing valid ─────────────────────────────────────────────────────────────────────▶ closed
///
/// Whether a connection belongs to a participant is known to the core alone, so the worker asks it once a second. While
/// others find no place the 5 s are one.
/// A frame for a peer that does not read is dropped, as a full link drops a datagram.
final class StreamConnections {
  /// What bounds them.
  struct Limits: Sendable {
    /// Connections at once; further ones are closed when they are accepted.
    var total = 2_048
    /// Connections at once from one IPv4 address or one IPv6 network of 64 bits.
    var perAddress = 1_024
    /// A connection that no participant proved to be its own after this long is closed.
    var provingTime = TimeDelta.seconds(5)
    /// The same while there is no place for others: who connects to take up places holds none for long.
    var crowdedProvingTime = TimeDelta.seconds(1)
    /// One whose peer reads nothing for this long is closed.
    var stallTime = TimeDelta.seconds(10)
  }

  private final class Connection {
    let stream: TCPStream
    var reader = StreamFrameReader()
    var queue = StreamFrameQueue()
    let acceptedAt: Instant
    /// Since when the kernel takes nothing; nil while it does.
    var stalledSince: Instant?
    /// Something was queued since the last flush.
    var isDirty = false

    init(_ stream: consuming TCPStream, at now: Instant) {
      self.stream = stream
      acceptedAt = now
    }
  }

  /// The smallest token of a connection in the worker's poller.
  static let firstToken: UInt64 = 16
  private static let acceptsPerTurn = 32
  private static let sweepInterval = TimeDelta.seconds(1)

  let listener: TCPListener
  private let limits: Limits
  private var connections: [Connection?] = []
  private var free: [Int] = []
  private var byAddress: [SocketAddress: Int] = [:]
  private var perAddress: [SocketAddress: Int] = [:]
  private var dirty: [Int] = []
  private var sweptAt = Instant.zero
  /// Somebody found no place since the last sweep.
  private var isCrowded = false
  /// Descriptors ran out: nobody is accepted before the next sweep.
  private var isPaused = false
  private let listenerToken: UInt64
  /// The addresses of connections that have ended and that the core has to be told of.
  private(set) var ended: [SocketAddress] = []

  init(
    _ listener: TCPListener, limits: Limits = Limits(), token: UInt64, in poller: borrowing Poller
  ) throws(SystemError) {
    self.listener = listener
    self.limits = limits
    listenerToken = token
    try poller.add(self.listener.fileDescriptor, token: token)
  }

  /// Connections that are open.
  var count: Int { byAddress.count }

  func forgetEnded() { ended.removeAll(keepingCapacity: true) }

  // MARK: Coming and going

  /// Takes the connections that wait. Not nil when the process can hold no more: they wait for the next sweep.
  func accept(in poller: borrowing Poller, at now: Instant) -> SystemError? {
    for _ in 0..<Self.acceptsPerTurn {
      do throws(SystemError) {
        guard let stream = try listener.accept() else { return nil }
        try insert(stream, in: poller, at: now)
      } catch {
        // The listener would be readable all the time.
        isPaused = (try? poller.modify(listener.fileDescriptor, token: listenerToken, interest: [])) != nil
        return error
      }
    }
    return nil
  }

  private func insert(
    _ stream: consuming TCPStream, in poller: borrowing Poller, at now: Instant
  ) throws(SystemError) {
    let address = stream.remoteAddress
    let network = address.network
    guard count < limits.total, perAddress[network, default: 0] < limits.perAddress else {
      isCrowded = true
      return
    }
    guard byAddress[address] == nil else { return }
    let index = free.popLast() ?? connections.count
    let descriptor = stream.fileDescriptor
    let connection = Connection(stream, at: now)
    if index == connections.count { connections.append(connection) } else { connections[index] = connection }
    do throws(SystemError) {
      try poller.add(descriptor, token: Self.firstToken + UInt64(index))
    } catch {
      connections[index] = nil
      free.append(index)
      throw error
    }
    byAddress[address] = index
    perAddress[network, default: 0] += 1
  }

  /// Closes it; the poller forgets a closed descriptor by itself.
  private func close(_ index: Int) {
    guard let connection = connections[index] else { return }
    let address = connection.stream.remoteAddress
    connections[index] = nil
    free.append(index)
    byAddress[address] = nil
    let left = perAddress[address.network, default: 1] - 1
    perAddress[address.network] = left > 0 ? left : nil
    ended.append(address)
  }

  /// Once a second: closes what belongs to nobody and what does not move.
  func sweep(in poller: borrowing Poller, at now: Instant, isServed: (SocketAddress) -> Bool) {
    guard now - sweptAt >= Self.sweepInterval else { return }
    sweptAt = now
    if isPaused {
      isPaused =
        (try? poller.modify(listener.fileDescriptor, token: listenerToken, interest: .readable)) == nil
    }
    let provingTime = isCrowded ? limits.crowdedProvingTime : limits.provingTime
    isCrowded = false
    for index in connections.indices {
      guard let connection = connections[index], now - connection.acceptedAt >= provingTime else { continue }
      let isStalled = connection.stalledSince.map { now - $0 >= limits.stallTime } ?? false
      if isStalled || !isServed(connection.stream.remoteAddress) { close(index) }
    }
  }

  // MARK: Bytes

  /// Reads once from the connection with this token.
  func read(_ token: UInt64) {
    let index = Int(token - Self.firstToken)
    guard connections.indices.contains(index), let connection = connections[index] else { return }
    if !connection.reader.fill({ connection.stream.read(into: &$0) }) { close(index) }
  }

  /// Looks for the next datagram of what was read, which `withFrame` then shows.
  func advance(_ token: UInt64) -> Bool {
    let index = Int(token - Self.firstToken)
    guard connections.indices.contains(index), let connection = connections[index] else { return false }
    do throws(StreamFrameError) { return try connection.reader.advance() } catch {
      close(index)
      return false
    }
  }

  /// Calls `body` with the datagram that `advance` found, which may be changed in place, and where it came from.
  func withFrame(_ token: UInt64, _ body: (_ datagram: inout MutableSpan<UInt8>, SocketAddress) -> Void) {
    guard let connection = connections[Int(token - Self.firstToken)] else { return }
    connection.reader.withFrame { body(&$0, connection.stream.remoteAddress) }
  }

  /// Queues a datagram for the connection from `destination`; dropped when there is none, or its queue is full.
  func send(_ datagram: Span<UInt8>, to destination: SocketAddress) {
    guard let index = byAddress[destination], let connection = connections[index],
      connection.queue.append(datagram), !connection.isDirty, connection.stalledSince == nil
    else { return }
    connection.isDirty = true
    dirty.append(index)
  }

  /// Hands to the kernel what was queued.
  func flush(in poller: borrowing Poller, at now: Instant) {
    guard !dirty.isEmpty else { return }
    for index in dirty { write(index, in: poller, at: now) }
    dirty.removeAll(keepingCapacity: true)
  }

  /// The kernel has room again for the connection with this token.
  func resume(_ token: UInt64, in poller: borrowing Poller, at now: Instant) {
    let index = Int(token - Self.firstToken)
    guard connections.indices.contains(index) else { return }
    write(index, in: poller, at: now)
  }

  private func write(_ index: Int, in poller: borrowing Poller, at now: Instant) {
    guard let connection = connections[index] else { return }
    connection.isDirty = false
    while !connection.queue.isEmpty {
      guard let count = connection.stream.write(connection.queue.waiting) else { return close(index) }
      if count > 0 {
        connection.queue.written(count)
        if connection.stalledSince != nil { connection.stalledSince = now }
      } else {
        guard connection.stalledSince == nil else { return }
        connection.stalledSince = now
        return watch(connection, index, [.readable, .writable], in: poller)
      }
    }
    guard connection.stalledSince != nil else { return }
    connection.stalledSince = nil
    watch(connection, index, .readable, in: poller)
  }

  private func watch(
    _ connection: Connection, _ index: Int, _ interest: Poller.Interest, in poller: borrowing Poller
  ) {
    let token = Self.firstToken + UInt64(index)
    do throws(SystemError) {
      try poller.modify(connection.stream.fileDescriptor, token: token, interest: interest)
    } catch {
      close(index)
    }
  }
}

extension SocketAddress {
  /// What one person is likely to have: an IPv4 address, or an IPv6 network of 64 bits; without a port.
  var network: SocketAddress {
    var network = self
    network.port = 0
    if family == .ipv6 { network.low = 0 }
    return network
  }
}
