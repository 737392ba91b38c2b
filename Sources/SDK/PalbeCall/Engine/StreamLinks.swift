import PalbeEventLoop
import PalbeICE
import PalbeUnits

/// A call's TCP connections (RFC 6544), for networks that let no UDP through; datagrams are framed (RFC 4571).
///
///     none ──a datagram for there──▶ connecting ──▶ open ──its end──▶ none, and not tried again for a second
///
/// What does not fit while the other end takes nothing is dropped, as a full link drops a datagram.
final class StreamLinks {
  private final class Link {
    let stream: TCPStream
    var reader = StreamFrameReader()
    var queue = StreamFrameQueue(capacity: StreamLinks.queueByteCount)
    /// It connects, or the kernel's buffer is full.
    var isWaiting = true

    init(_ stream: consuming TCPStream) { self.stream = stream }
  }

  /// The smallest token of a connection in the network thread's poller.
  static let firstToken: UInt64 = 16
  /// Connections at once; an SFU offers one or two.
  private static let limit = 8
  /// Holds a key frame.
  private static let queueByteCount = 262_144
  private static let retryTime = TimeDelta.seconds(1)
  private static let remembered = 64

  private var links: [Link?] = Array(repeating: nil, count: limit)
  private var openedAt: [SocketAddress: Instant] = [:]
  private var ended: [SocketAddress] = []

  /// The next connection that has ended, or could not be made.
  func pollEnded() -> SocketAddress? { ended.isEmpty ? nil : ended.removeFirst() }

  /// Sends a datagram over the connection to `destination`, which is opened where there is none.
  func send(
    _ datagram: Span<UInt8>, to destination: SocketAddress, in poller: borrowing Poller, at now: Instant
  ) {
    let known = links.firstIndex { $0?.stream.remoteAddress == destination }
    guard let index = known ?? open(destination, in: poller, at: now), let link = links[index],
      link.queue.append(datagram), !link.isWaiting
    else { return }
    write(index, in: poller)
  }

  private func open(_ destination: SocketAddress, in poller: borrowing Poller, at now: Instant) -> Int? {
    if let before = openedAt[destination], now - before < Self.retryTime { return nil }
    guard let index = links.firstIndex(where: { $0 == nil }) else { return nil }
    if openedAt.count == Self.remembered { openedAt.removeAll() }
    openedAt[destination] = now
    do throws(SocketError) {
      let stream = try TCPStream(connectingTo: destination, waits: false)
      do throws(SystemError) {
        try poller.add(stream.fileDescriptor, token: Self.token(index), interest: [.readable, .writable])
      } catch { throw .system(error) }
      links[index] = Link(stream)
      return index
    } catch {
      ended.append(destination)
      return nil
    }
  }

  private static func token(_ index: Int) -> UInt64 { firstToken + UInt64(index) }

  private func link(_ token: UInt64) -> (index: Int, link: Link)? {
    guard token >= Self.firstToken, token < Self.firstToken + UInt64(Self.limit) else { return nil }
    let index = Int(token - Self.firstToken)
    return links[index].map { (index, $0) }
  }

  /// The kernel has room, or the connection was made or refused.
  func resume(_ token: UInt64, in poller: borrowing Poller) {
    if let (index, _) = link(token) { write(index, in: poller) }
  }

  /// The poller forgets a closed descriptor by itself.
  private func close(_ index: Int) {
    guard let link = links[index] else { return }
    ended.append(link.stream.remoteAddress)
    links[index] = nil
  }

  private func write(_ index: Int, in poller: borrowing Poller) {
    guard let link = links[index] else { return }
    var isFull = false
    while !isFull, !link.queue.isEmpty {
      guard let count = link.stream.write(link.queue.waiting) else { return close(index) }
      link.queue.written(count)
      isFull = count == 0
    }
    guard isFull != link.isWaiting else { return }
    link.isWaiting = isFull
    try? poller.modify(
      link.stream.fileDescriptor, token: Self.token(index),
      interest: isFull ? [.readable, .writable] : .readable)
  }

  /// Reads once, and gives every datagram that is whole to `body`, which may change it in place.
  func receive(_ token: UInt64, _ body: (_ datagram: inout MutableSpan<UInt8>, SocketAddress) -> Void) {
    guard let (index, link) = link(token) else { return }
    let isOpen = link.reader.fill { link.stream.read(into: &$0) }
    do throws(StreamFrameError) {
      while try link.reader.advance() { link.reader.withFrame { body(&$0, link.stream.remoteAddress) } }
      if !isOpen { close(index) }
    } catch { close(index) }
  }
}
