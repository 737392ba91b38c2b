import CPalbeLinux
import Glibc
import PalbeEventLoop
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@_spi(Testing) @testable import PalbeSFUServer

/// Requirement: ICE-TCP connections are bounded in number, in bytes and in time.
@Suite("TCP connections of a worker, real sockets in virtual time", .timeLimit(.minutes(1)), .serialized)
struct StreamConnectionsTests {
  /// The connections of a worker, and the poller that it would wait with.
  private final class Shelf {
    var poller: Poller
    let connections: StreamConnections
    let address: SocketAddress
    var now = Instant(nanoseconds: 1_000_000_000_000)
    /// What belongs to a participant.
    var served: Set<SocketAddress> = []
    var datagrams: [[UInt8]] = []
    /// The process could hold no more connections.
    var isShort = false

    init(_ change: (inout StreamConnections.Limits) -> Void = { _ in }) throws {
      var limits = StreamConnections.Limits()
      change(&limits)
      poller = try Poller()
      let listener = try TCPListener(binding: SocketAddress(ipv4: 127, 0, 0, 1, port: 0))
      address = listener.localAddress
      connections = try StreamConnections(listener, limits: limits, token: 2, in: poller)
    }

    /// Handles what is ready, until nothing has been for a while.
    func turn(_ rounds: Int = 400, until isDone: () -> Bool = { false }) throws {
      for _ in 0..<rounds where !isDone() {
        let count = try poller.wait(for: .milliseconds(5))
        for index in 0..<count {
          let event = poller[index]
          if event.token == 2 {
            isShort = connections.accept(in: poller, at: now) != nil
          } else {
            if event.isWritable { connections.resume(event.token, in: poller, at: now) }
            guard event.isReadable else { continue }
            connections.read(event.token)
            while connections.advance(event.token) {
              connections.withFrame(event.token) { datagram, source in
                self.datagrams.append([UInt8](datagram.span))
                self.served.insert(source)
              }
            }
          }
        }
        if count == 0, isDone() { return }
      }
    }

    func connect() throws -> StreamLink { StreamLink(try TCPStream(connectingTo: address)) }

    func sweep(after time: TimeDelta) {
      now += time
      connections.sweep(in: poller, at: now) { served.contains($0) }
    }
  }

  @Test("who proves nothing within 5 s is closed and the core told; a participant's stays as long as it is")
  func proving() throws {
    let shelf = try Shelf()
    let silent = try shelf.connect()
    let proven = try shelf.connect()
    proven.send([1, 2, 3].span)
    try shelf.turn { shelf.connections.count == 2 && shelf.datagrams == [[1, 2, 3]] }
    #expect(shelf.connections.count == 2)
    shelf.sweep(after: .milliseconds(4_900))
    #expect(shelf.connections.count == 2)
    shelf.sweep(after: .seconds(1))
    #expect(shelf.connections.count == 1)
    #expect(shelf.connections.ended.count == 1)
    #expect(silent.receive() == nil)
    shelf.sweep(after: .seconds(100))
    #expect(shelf.connections.count == 1)
    shelf.served = []
    shelf.sweep(after: .seconds(1))
    #expect(shelf.connections.count == 0)
  }

  @Test("no more than so many connections from one address, and in total")
  func counts() throws {
    let shelf = try Shelf { $0.perAddress = 3 }
    let links = try (0..<6).map { _ in try shelf.connect() }
    try shelf.turn { shelf.connections.count == 3 && links.count == 6 }
    #expect(shelf.connections.count == 3)
    shelf.sweep(after: .seconds(6))
    #expect(shelf.connections.count == 0)
    // The places are free again.
    let more = try (0..<2).map { _ in try shelf.connect() }
    try shelf.turn { shelf.connections.count == more.count }
    #expect(shelf.connections.count == 2)
    let small = try Shelf { $0.total = 1 }
    let two = try (0..<2).map { _ in try small.connect() }
    try small.turn { small.connections.count == two.count }
    #expect(small.connections.count == 1)
  }

  @Test("while places are short, who proves nothing holds one for seconds; who is served keeps its own")
  func crowded() throws {
    let shelf = try Shelf { $0.total = 3 }
    let proven = try shelf.connect()
    proven.send([1, 2, 3].span)
    try shelf.turn { shelf.datagrams == [[1, 2, 3]] }
    let idle = try (0..<2).map { _ in try shelf.connect() }
    try shelf.turn { shelf.connections.count == 1 + idle.count }
    shelf.sweep(after: .milliseconds(1_100))
    #expect(shelf.connections.count == 3)
    // Nobody was turned away before; now one is.
    let late = try shelf.connect()
    try shelf.turn(20)
    #expect(shelf.connections.count == 3 && late.receive() == nil)
    shelf.sweep(after: .milliseconds(1_100))
    #expect(shelf.connections.count == 1)
    let next = try shelf.connect()
    try shelf.turn { shelf.connections.count == 2 }
    shelf.sweep(after: .milliseconds(1_100))
    #expect(shelf.connections.count == 2 && next.receive() == nil)
  }

  @Test("without descriptors left a connection waits for the next sweep, and does not turn the loop")
  func descriptors() throws {
    let shelf = try Shelf()
    let link = try shelf.connect()
    try withoutDescriptors(above: link.stream.fileDescriptor) {
      try shelf.turn { shelf.isShort }
      #expect(shelf.isShort && shelf.connections.count == 0)
      shelf.isShort = false
      try shelf.turn(4)
      #expect(!shelf.isShort)
    }
    shelf.sweep(after: .seconds(1))
    try shelf.turn { shelf.connections.count == 1 }
    #expect(shelf.connections.count == 1 && !shelf.isShort)
  }

  @Test("a frame longer than any datagram closes the connection at once; so does its end")
  func garbage() throws {
    let shelf = try Shelf()
    let garbage = try shelf.connect()
    let ending = try TCPStream(connectingTo: shelf.address)
    try shelf.turn { shelf.connections.count == 2 }
    #expect(garbage.stream.write([0xff, 0xff, 1].span) == 3)
    try shelf.turn { shelf.connections.count == 1 }
    #expect(shelf.connections.count == 1)
    _ = consume ending
    try shelf.turn { shelf.connections.count == 0 }
    #expect(shelf.connections.ended.count == 2)
    shelf.connections.forgetEnded()
    #expect(shelf.connections.ended.isEmpty)
  }

  @Test("a peer that does not read gets whole frames as long as there is room, and is closed after 10 s")
  func slowReader() throws {
    let shelf = try Shelf()
    let link = try shelf.connect()
    link.send([9].span)
    try shelf.turn { !shelf.served.isEmpty }
    let address = try #require(shelf.served.first)
    // More than the kernel and the queue hold, and more than loopback ever buffers.
    for number in 0..<20_000 {
      let datagram = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 1_000)
      shelf.connections.send(datagram.span, to: address)
      if number % 16 == 15 { shelf.connections.flush(in: shelf.poller, at: shelf.now) }
    }
    shelf.sweep(after: .seconds(6))
    #expect(shelf.connections.count == 1)
    // It reads again: every frame that comes is whole, and further ones come after it.
    var count = 0
    for _ in 0..<200 {
      while let datagram = link.receive() {
        #expect(datagram.count == 1_000 && datagram.allSatisfy { $0 == datagram[0] })
        count += 1
      }
      try shelf.turn(2)
      if count > 0, link.receive() == nil { break }
    }
    #expect(count > 50 && count < 20_000)
    for number in 0..<20_000 {
      let datagram = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 1_000)
      shelf.connections.send(datagram.span, to: address)
      if number % 16 == 15 { shelf.connections.flush(in: shelf.poller, at: shelf.now) }
    }
    shelf.sweep(after: .seconds(5))
    #expect(shelf.connections.count == 1)
    shelf.sweep(after: .seconds(6))
    #expect(shelf.connections.count == 0)
  }
}
