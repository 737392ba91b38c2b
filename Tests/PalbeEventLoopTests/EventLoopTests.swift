import CPalbeLinux
import CPalbeMallocCounter
import PalbeEventLoop
import PalbeUnits
import Synchronization
import Testing

@Suite("Event loop")
struct EventLoopTests {
  @Test("A wake-up ends a wait, several are one, and draining makes it wait again")
  func wakeUp() throws {
    var poller = try Poller()
    let wakeUp = try WakeUp()
    try poller.add(wakeUp.fileDescriptor, token: 42)
    #expect(try poller.wait(for: .zero) == 0)
    wakeUp.wake()
    wakeUp.wake()
    #expect(try poller.wait(for: nil) == 1)
    #expect(poller[0].token == 42 && poller[0].isReadable && !poller[0].isWritable)
    wakeUp.drain()
    #expect(try poller.wait(for: .zero) == 0)
    wakeUp.wake()
    try poller.remove(wakeUp.fileDescriptor)
    #expect(try poller.wait(for: .zero) == 0)
  }

  @Test("A wait ends at its deadline, not before, to a fraction of a millisecond; a past one only looks")
  func deadlines() throws {
    var poller = try Poller()
    let deadline = MonotonicClock.now() + .microseconds(300)
    #expect(try poller.wait(until: deadline) == 0)
    #expect(MonotonicClock.now() >= deadline)
    #expect(try poller.wait(until: .zero) == 0)
  }

  @Test("Interest can change, and a descriptor that was never added is a typed error")
  func interest() throws {
    var poller = try Poller()
    let socket = try UDPSocket(binding: loopback4)
    try poller.add(socket.fileDescriptor, token: 1)
    #expect(try poller.wait(for: .zero) == 0)
    try poller.modify(socket.fileDescriptor, token: 2, interest: [.readable, .writable])
    #expect(try poller.wait(for: .zero) == 1)
    #expect(poller[0].token == 2 && poller[0].isWritable)
    #expect(throws: SystemError(.epollControl, code: ENOENT)) {
      try Poller().remove(socket.fileDescriptor)
    }
  }

  @Test("A mailbox carries messages of many threads, each thread's in order")
  func mailboxThreads() throws {
    let mailbox = try Mailbox<(Int, Int)>(capacity: 10_000)
    let threads = try (0..<4).map { number in
      try WorkerThread(name: "sender \(number)") { for step in 0..<1_000 { mailbox.send((number, step)) } }
    }
    var poller = try Poller()
    try poller.add(mailbox.wakeUp.fileDescriptor, token: 0)
    var next = [0, 0, 0, 0]
    var messages: [(Int, Int)] = []
    while next.reduce(0, +) < 4_000 {
      try #require(try poller.wait(for: .seconds(10)) == 1)
      mailbox.drain(into: &messages)
      for (number, step) in messages {
        #expect(step == next[number])
        next[number] += 1
      }
    }
    for thread in threads { thread.join() }
  }

  @Test("A full mailbox refuses, a drained one accepts, a closed one refuses and wakes its owner")
  func mailboxBounds() throws {
    let mailbox = try Mailbox<Int>(capacity: 2)
    #expect(mailbox.send(1) && mailbox.send(2) && !mailbox.send(3))
    var messages: [Int] = [9]
    mailbox.drain(into: &messages)
    #expect(messages == [1, 2])
    #expect(mailbox.send(4))
    mailbox.close()
    #expect(!mailbox.send(5))
    var poller = try Poller()
    try poller.add(mailbox.wakeUp.fileDescriptor, token: 0)
    #expect(try poller.wait(for: .zero) == 1)
    mailbox.drain(into: &messages)
    #expect(messages == [4])
  }

  @Test("A mailbox gives back what a crowd took, and keeps what the everyday needs")
  func mailboxMemory() throws {
    let mailbox = try Mailbox<Int>(capacity: 100_000)
    var messages: [Int] = []
    for number in 0..<100_000 { mailbox.send(number) }
    mailbox.drain(into: &messages)
    #expect(messages.count == 100_000)
    for _ in 0..<2 {
      for number in 0..<100 { mailbox.send(number) }
      mailbox.drain(into: &messages)
      #expect(messages.count == 100 && messages.capacity < 1_000)
    }
    let before = palbe_malloc_count()
    for number in 0..<100 { mailbox.send(number) }
    mailbox.drain(into: &messages)
    #expect(palbe_malloc_count() == before)
  }

  @Test("A thread takes over a socket that cannot be copied, and closes it at its end")
  func threadOwnsState() throws {
    let socket = try UDPSocket(binding: loopback4)
    let address = socket.localAddress
    let seen = Mutex<UInt16>(0)
    let thread = try WorkerThread(name: "owner of a long name", moving: socket) { socket in
      seen.withLock { $0 = socket.localAddress.port }
    }
    thread.join()
    thread.join()
    #expect(seen.withLock { $0 } == address.port)
    _ = try UDPSocket(binding: address)
  }

  @Test("Live bytes count what a thread that has ended allocated, until another frees it")
  func liveBytes() throws {
    let before = palbe_malloc_live()
    // A sanitizer has an allocator of its own.
    guard before != 0 else { return }
    let held = Mutex<[UInt8]>([])
    let thread = try WorkerThread(name: "allocates") {
      held.withLock { $0 = [UInt8](repeating: 1, count: 64 << 20) }
    }
    thread.join()
    // Other tests allocate meanwhile.
    #expect(palbe_malloc_live() - before > 48 << 20)
    held.withLock { $0 = [] }
    #expect(palbe_malloc_live() - before < 16 << 20)
  }

  @Test("A signal is read from a descriptor")
  func signals() throws {
    let seen = Mutex<[Signal?]>([])
    let thread = try WorkerThread(name: "signals") {
      guard let watch = try? SignalWatch([.user1]) else { return }
      let before = watch.next()
      pthread_kill(pthread_self(), Signal.user1.rawValue)
      let signal = watch.wait()
      seen.withLock { $0 = [before, signal] }
    }
    thread.join()
    #expect(seen.withLock { $0 } == [nil, .user1])
  }

  @Test("The host's addresses: loopback last, no link-local ones, ports zero")
  func addresses() throws {
    let addresses = try Host.localAddresses()
    #expect(addresses.contains(loopback4))
    #expect(addresses.allSatisfy { $0.port == 0 && !($0.family == .ipv6 && $0.high >> 54 == 0x3fa) })
    let loopbacks = addresses.map(\.isLoopback)
    #expect(loopbacks == loopbacks.sorted { !$0 && $1 })
    #expect(Host.processorCount >= 1)
    #expect(try Host.raiseOpenFileLimit(to: 1_024) >= 1_024)
  }

  @Test("Clocks move forward and the random source does not repeat itself")
  func clocks() {
    let first = MonotonicClock.now()
    #expect(MonotonicClock.now() >= first && first > .zero)
    #expect(WallClock.unixNanoseconds() > 1_700_000_000_000_000_000)
    var random = SystemRandom.source()
    #expect(random.next() != random.next())
  }

  @Test("Errors name the call and the reason")
  func errors() {
    #expect(SystemError(.bind, code: EACCES).description == "bind: Permission denied")
    #expect(MemoryLayout<SocketError>.size <= 24)
  }
}
