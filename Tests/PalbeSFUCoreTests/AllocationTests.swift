import CPalbeMallocCounter
import PalbeRTP
import PalbeSFUCore
import PalbeUnits
import Testing

struct AllocationTests {
  @Test("Forwarding allocates nothing per packet, protect and unprotect included")
  func forwarding() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let carol = try world.client("carol")
    carol.offersRTX = false
    world.join(carol)
    try #require(world.connect(carol))
    // Until what is kept for repairs grows no more.
    for number in 0..<340 {
      world.send(try alice.videoFrame(1, isKeyFrame: number == 0), from: alice)
      world.send([try alice.media(0, payload: [1, 2, 3])], from: alice)
      world.run(for: .milliseconds(10))
    }
    #expect(bob.packets(payloadType: 96).count == carol.packets(payloadType: 96).count)

    var datagrams: [[UInt8]] = []
    for number in 0..<200 {
      datagrams += try alice.videoFrame(1, isKeyFrame: number % 50 == 0)
      datagrams.append(try alice.media(0, payload: [1, 2, 3]))
    }
    // One slab, because an array of arrays allocates in a debug build.
    let counts = datagrams.map(\.count)
    let slab = datagrams.flatMap { $0 + [UInt8](repeating: 0, count: 1_500 - $0.count) }
    var input = [UInt8](repeating: 0, count: 1_500)
    var buffer = input
    buffer[0] = 1
    var sent = 0
    let before = palbe_malloc_count()
    for index in counts.indices {
      for byte in 0..<1_500 { input[byte] = slab[index * 1_500 + byte] }
      var datagram = input.mutableSpan
      world.worker.receive(&datagram, count: counts[index], from: alice.address, at: world.now)
      var output = buffer.mutableSpan
      while world.worker.pollTransmit(into: &output, at: world.now) != nil { sent += 1 }
    }
    let mallocs = palbe_malloc_count() - before
    #expect(sent == 1_200)
    #expect(mallocs == 0)
  }
}
