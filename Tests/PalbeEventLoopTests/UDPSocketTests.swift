import CPalbeMallocCounter
import PalbeEventLoop
import PalbeUnits
import PalbeWire
import Testing

let loopback4 = SocketAddress(ipv4: 127, 0, 0, 1, port: 0)
let loopback6 = SocketAddress(ipv6High: 0, low: 1, port: 0)

/// Waits for the next datagrams; the deadline only ends a test that would hang.
func receive(_ socket: borrowing UDPSocket, _ batch: inout ReceiveBatch, _ poller: inout Poller) throws -> Int
{
  for _ in 0..<100 {
    let count = try socket.receive(into: &batch)
    if count > 0 { return count }
    _ = try poller.wait(for: .milliseconds(100))
  }
  return 0
}

@Suite("UDP socket")
struct UDPSocketTests {
  @Test(
    "A batch arrives whole, in order, with its sender", arguments: [loopback4, loopback6], [false, true])
  func roundTrip(address: SocketAddress, segmentation: Bool) throws {
    let sender = try UDPSocket(binding: address)
    let receiver = try UDPSocket(binding: address)
    #expect(receiver.localAddress.port != 0)
    var poller = try Poller()
    try poller.add(receiver.fileDescriptor, token: 7)
    var outgoing = SendBatch(capacity: 32, segmentation: segmentation)
    // Runs of one length, a shorter last one, a change of length: every way a segmented message can end.
    let lengths = [1_200, 1_200, 1_200, 700, 700, 900, 1, 1, 0, 1_200, 1_200]
    for (number, length) in lengths.enumerated() {
      var slot = outgoing.nextSlot()
      for index in 0..<length { slot[index] = UInt8(truncatingIfNeeded: number + index) }
      outgoing.commit(byteCount: length, to: receiver.localAddress)
    }
    #expect(outgoing.count == lengths.count)
    let isSent = sender.send(&outgoing)
    #expect(isSent)
    #expect(outgoing.isEmpty && outgoing.sentCount == UInt64(lengths.count) && outgoing.failedCount == 0)
    #expect(outgoing.usesSegmentation == segmentation)

    var incoming = ReceiveBatch(capacity: 4)
    var number = 0
    while number < lengths.count {
      let count = try receive(receiver, &incoming, &poller)
      try #require(count > 0)
      for index in 0..<count {
        #expect(incoming.source(index) == sender.localAddress)
        let bytes = [UInt8](incoming.datagram(index))
        #expect(bytes == (0..<lengths[number]).map { UInt8(truncatingIfNeeded: number + $0) })
        number += 1
      }
    }
  }

  @Test("An IPv6 socket with both stacks shows an IPv4 sender as IPv4 and answers it")
  func dualStack() throws {
    var options = UDPSocket.Options()
    options.isDualStack = true
    let both = try UDPSocket(binding: SocketAddress(ipv6High: 0, low: 0, port: 0), options: options)
    let only4 = try UDPSocket(binding: loopback4)
    var poller = try Poller()
    try poller.add(both.fileDescriptor, token: 0)
    try poller.add(only4.fileDescriptor, token: 1)
    let port = both.localAddress.port
    only4.send([1, 2, 3].span, to: SocketAddress(ipv4: 127, 0, 0, 1, port: port))
    var incoming = ReceiveBatch(capacity: 4)
    #expect(try receive(both, &incoming, &poller) == 1)
    #expect(incoming.source(0) == only4.localAddress)
    let source = incoming.source(0)
    both.send([4, 5].span, to: source)
    #expect(try receive(only4, &incoming, &poller) == 1)
    #expect([UInt8](incoming.datagram(0)) == [4, 5])
  }

  @Test("The slot can be changed in place and is longer than the datagram")
  func inPlace() throws {
    let socket = try UDPSocket(binding: loopback4)
    var poller = try Poller()
    try poller.add(socket.fileDescriptor, token: 0)
    socket.send([9, 9].span, to: socket.localAddress)
    var incoming = ReceiveBatch(capacity: 1, slotByteCount: 64)
    #expect(try receive(socket, &incoming, &poller) == 1)
    var slot = incoming.slot(0)
    #expect(slot.count == 64)
    slot[0] = 1
    #expect([UInt8](incoming.datagram(0)) == [1, 9])
  }

  @Test("A datagram longer than a slot is counted and reads as empty")
  func oversized() throws {
    let socket = try UDPSocket(binding: loopback4)
    var poller = try Poller()
    try poller.add(socket.fileDescriptor, token: 0)
    socket.send([UInt8](repeating: 1, count: 65).span, to: socket.localAddress)
    var incoming = ReceiveBatch(capacity: 2, slotByteCount: 64)
    #expect(try receive(socket, &incoming, &poller) == 1)
    #expect(incoming.byteCount(0) == 0)
    #expect(incoming.oversizedCount == 1)
  }

  @Test("A port in use and an address of another host are typed errors")
  func bindErrors() throws {
    let first = try UDPSocket(binding: loopback4)
    let port = first.localAddress.port
    #expect(throws: SocketError.portInUse(port)) { _ = try UDPSocket(binding: first.localAddress) }
    #expect(throws: SocketError.addressNotAvailable) {
      _ = try UDPSocket(binding: SocketAddress(ipv4: 192, 0, 2, 1, port: 0))
    }
    #expect(SocketError.portInUse(7_882).description == "port 7882 is in use")
  }

  @Test("Datagrams nobody can receive are counted as failed and do not hold up the rest")
  func failures() throws {
    let socket = try UDPSocket(binding: loopback4)
    var batch = SendBatch(capacity: 8, slotByteCount: 65_535)
    batch.append([1].span, to: SocketAddress(ipv6High: 0, low: 1, port: 9))
    batch.append([UInt8](repeating: 0, count: 65_530).span, to: socket.localAddress)
    batch.append([2].span, to: socket.localAddress)
    let isSent = socket.send(&batch)
    #expect(isSent)
    #expect(batch.failedCount == 2 && batch.sentCount == 1)
  }

  @Test("A batch refuses what does not fit")
  func batchBounds() throws {
    var batch = SendBatch(capacity: 1, slotByteCount: 4)
    let isTooLongRefused = !batch.append([1, 2, 3, 4, 5].span, to: loopback4)
    let isAccepted = batch.append([1, 2, 3, 4].span, to: loopback4)
    #expect(isTooLongRefused && isAccepted && batch.isFull)
    let isRefusedWhenFull = !batch.append([1].span, to: loopback4)
    #expect(isRefusedWhenFull)
    batch.removeAll()
    #expect(batch.isEmpty && !batch.isFull)
  }

  @Test("The kernel is asked for 4 MiB and says what it granted")
  func buffers() throws {
    let socket = try UDPSocket(binding: loopback4)
    #expect(socket.receiveBufferByteCount > 100_000)
    #expect(socket.sendBufferByteCount > 100_000)
  }

  @Test("Receiving and sending a batch allocate nothing", arguments: [false, true])
  func allocations(segmentation: Bool) throws {
    let socket = try UDPSocket(binding: loopback4)
    let destination = socket.localAddress
    var poller = try Poller()
    try poller.add(socket.fileDescriptor, token: 0)
    var outgoing = SendBatch(capacity: 16, segmentation: segmentation)
    var incoming = ReceiveBatch(capacity: 16)
    let payload = [UInt8](repeating: 3, count: 1_000)
    var received = 0
    var allocations: UInt64 = 0
    for round in 0..<50 {
      let before = palbe_malloc_count()
      for _ in 0..<16 { outgoing.append(payload.span, to: destination) }
      let isSent = socket.send(&outgoing)
      _ = try poller.wait(until: MonotonicClock.now() + .seconds(5))
      let isReadable = poller[0].isReadable
      var sum = 0
      while true {
        let count = try socket.receive(into: &incoming)
        if count == 0 { break }
        for index in 0..<count where incoming.source(index) == destination {
          sum += incoming.datagram(index).count
        }
      }
      if round > 0 { allocations += palbe_malloc_count() - before }
      received += sum
      #expect(isSent && isReadable)
    }
    #expect(received == 50 * 16 * 1_000)
    #expect(allocations == 0)
  }
}
