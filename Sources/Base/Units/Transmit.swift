/// A datagram to send: the first `count` bytes of the buffer lent to `pollTransmit`.
public struct Transmit: Sendable, Equatable {
  public var destination: SocketAddress
  public var count: Int
  public init(destination: SocketAddress, count: Int) {
    self.destination = destination
    self.count = count
  }
}
