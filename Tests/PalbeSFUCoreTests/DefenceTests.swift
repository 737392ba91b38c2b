import PalbeDTLS
import PalbeICE
import PalbeLiveKit
import PalbeProtobuf
import PalbeRTP
import PalbeUnits
import Testing

@testable import PalbeSFUCore

/// Requirement: rate limits before any allocation, no amplification, replay windows, no starvation.
struct DefenceTests {
  private let stranger = SocketAddress(ipv4: 203, 0, 113, 9, port: 99)

  // MARK: Allowances

  @Test("An allowance: a burst at once, then the rate; after a rest the burst again")
  func allowance() {
    let allowance = WorkAllowance(rate: 100, burst: 10)
    var account = WorkAccount()
    var now = Instant(nanoseconds: 5)
    func admitted(_ attempts: Int) -> Int {
      (0..<attempts).count { _ in allowance.admits(1, on: &account, at: now) }
    }
    #expect(admitted(50) == 10)
    now += .milliseconds(30)
    #expect(admitted(50) == 3)
    #expect(!account.isRested(at: now))
    now += .seconds(3)
    #expect(account.isRested(at: now))
    #expect(admitted(50) == 10)
    now += .seconds(1)
    let tooMuch = allowance.admits(11, on: &account, at: now)
    let all = allowance.admits(10, on: &account, at: now)
    #expect(!tooMuch && all)
  }

  // MARK: Amplification

  @Test("RFC 8445 §19.5: an unproven address gets three times its bytes at most; answers take a password")
  func amplification() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.answersChecks = false
    world.join(alice)
    let participant = try #require(world.participant("alice"))
    let wide = SocketAddress(ipv6High: 0x2001_0db8 << 32, low: 1, port: 9)
    let requests: [(STUNMessage) -> STUNMessage] = [
      { $0 },
      { message in
        var message = message
        message.role = .controlled(tieBreaker: 1)
        return message
      },
    ]
    for source in [stranger, wide] {
      for change in requests {
        let request = world.check(participant) { $0 = change($0) }
        let before = world.sentByteCounts[source, default: 0]
        world.receive(request, from: source)
        let answer = world.sentByteCounts[source, default: 0] - before
        #expect(answer > 0 && answer <= 3 * request.count)
      }
    }
    let before = world.sentByteCounts
    let good = world.check(participant)
    // What follows MESSAGE-INTEGRITY has no meaning but as a FINGERPRINT.
    for index in good.indices.dropLast(8) {
      var bad = good
      bad[index] ^= 1
      world.receive(bad, from: SocketAddress(ipv4: 203, 0, 113, 10, port: 99))
      world.receive(Array(good[..<index]), from: SocketAddress(ipv4: 203, 0, 113, 10, port: 99))
    }
    #expect(world.sentByteCounts == before)
  }

  @Test("RFC 9147 §5.1: a handshake is answered only where a check of the last 30 s came from")
  func handshakeElsewhere() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.answersChecks = false
    world.join(alice)
    let participant = try #require(world.participant("alice"))
    alice.dtls.start(at: world.now)
    let flight = alice.dtls.pollTransmit()
    let hello = try #require(flight)
    world.receive(hello, from: stranger)
    #expect(world.sentByteCounts.isEmpty)
    // The victim of a forged source gets the answer to the check, and no certificate from somebody else's handshake.
    world.receive(world.check(participant), from: alice.address)
    let answered = world.sentByteCounts[alice.address, default: 0]
    world.receive(hello, from: stranger)
    #expect(world.sentByteCounts[stranger] == nil)
    #expect(world.sentByteCounts[alice.address] == answered)
    world.now += .seconds(31)
    world.receive(hello, from: alice.address)
    #expect(world.sentByteCounts[alice.address] == answered)
  }

  @Test("Checks from one address are answered at a bounded rate")
  func checkRate() throws {
    let world = try World { $0.strangerRate = 10 }
    let alice = try world.client("alice")
    alice.answersChecks = false
    world.join(alice)
    let participant = try #require(world.participant("alice"))
    let request = world.check(participant) { $0.role = .controlled(tieBreaker: 1) }
    for port in 0..<500 {
      world.receive(request, from: SocketAddress(ipv4: 203, 0, 113, 9, port: UInt16(1_000 + port)))
    }
    #expect(world.sentByteCounts.count == 40)
  }

  // MARK: Replay

  @Test("RFC 3711 §3.3.2: a recorded SRTP packet is forwarded once, however often it comes, from wherever")
  func mediaReplay() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    var recorded: [[UInt8]] = []
    for number in 0..<40 {
      let packets = try alice.videoFrame(1, isKeyFrame: number == 0)
      recorded += packets
      world.send(packets, from: alice)
      world.run(for: .milliseconds(33))
    }
    world.run(for: .milliseconds(100))
    let forwarded = bob.packets(payloadType: 96).count
    let received = world.received.count
    #expect(forwarded == 80)
    for packet in recorded + recorded.reversed() { world.receive(packet, from: alice.address) }
    for packet in recorded { world.receive(packet, from: bob.address) }
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 96).count == forwarded)
    #expect(world.received.count == received)
    #expect(world.reuses == 0)
  }

  @Test("RFC 3711 §3.4: a recorded SRTCP packet has its effect once")
  func controlReplay() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    try ForwardingTests.send(5, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    let first = try #require(bob.packets(payloadType: 96).first)
    let request = try bob.controlPacket([
      .nack(
        GenericNACK(sender: SSRC(1), media: first.header.ssrc, sequenceNumbers: [first.header.sequenceNumber])
      )
    ])
    world.send([request], from: bob)
    world.run(for: .milliseconds(200))
    let repairs = bob.packets(payloadType: 97).count
    #expect(repairs == 1)
    // Past any limit of repairs for one packet in one round trip.
    for _ in 0..<10 {
      world.run(for: .seconds(1))
      world.receive(request, from: bob.address)
    }
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 97).count == repairs)
  }

  // MARK: Starvation

  /// The longest that a packet of bob's waits for the worker while alice floods it, where a packet that goes out costs
  /// 100 µs and one that is dropped 2 µs.
  private func longestWait(participantRate: Int) throws -> TimeDelta {
    let world = try World { $0.participantRate = participantRate }
    let alice = try world.client("alice")
    alice.tracks = [world.track("mic", .audio)]
    let bob = try world.client("bob")
    bob.tracks = [world.track("mic2", .audio)]
    for client in [alice, bob] {
      world.join(client)
      try #require(world.connect(client))
    }
    world.run(for: .seconds(2))
    var free = world.now
    var longest = TimeDelta.zero
    for step in 0..<8_000 {
      // 20,000 packets a second of alice's, 50 of bob's.
      world.now += .microseconds(50)
      let isBob = step % 400 == 399
      let client = isBob ? bob : alice
      let packet = try client.media(0, payload: [1, 2, 3])
      let before = world.protectedCount
      world.receive(packet, from: client.address)
      let isForwarded = world.protectedCount > before
      free = max(free, world.now) + (isForwarded ? .microseconds(100) : .microseconds(2))
      if isBob {
        #expect(isForwarded)
        longest = max(longest, free - world.now)
      }
    }
    return longest
  }

  @Test("A participant that floods is cut to its share; what the others send waits for milliseconds")
  func starvation() throws {
    let bounded = try longestWait(participantRate: 2_000)
    #expect(bounded < .milliseconds(25))
    let unbounded = try longestWait(participantRate: 1_000_000_000)
    #expect(unbounded > .milliseconds(300))
  }

  @Test("An ordinary publisher never comes near its share: 10 Mbit/s with bursts of whole key frames")
  func ordinary() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    for number in 0..<60 {
      let packets = try alice.videoFrame(
        1, isKeyFrame: number % 30 == 0, packets: number % 30 == 0 ? 300 : 35, size: 100)
      world.send(packets, from: alice)
      world.run(for: .milliseconds(33))
    }
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 96).count == 2 * 300 + 58 * 35)
  }

  @Test("Who floods its signaling must leave; the others notice nothing")
  func signalFlood() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let mallory = try world.client("mallory")
    world.join(mallory)
    for _ in 0..<500 { world.signal(.ping(1), from: mallory) }
    #expect(!mallory.isClosed)
    for _ in 0..<2_000 where !mallory.isClosed { world.signal(.ping(1), from: mallory) }
    #expect(mallory.isClosed)
    #expect(mallory.leaves.map(\.action) == [.disconnect])
    #expect(!alice.isClosed && !bob.isClosed)
    let offers = try world.client("offers")
    offers.reoffersOnRequirement = false
    world.join(offers)
    var count = 0
    while !offers.isClosed, count < 200 {
      world.signal(.offer(offers.offerMessage()), from: offers)
      count += 1
    }
    #expect((30...60).contains(count))
    world.signal(.ping(1), from: alice)
    #expect(!alice.isClosed)
  }

  // MARK: Consent

  @Test("mediasoup PR 1332, RFC 7675 §5.1: without checks nothing is sent after 30 s")
  func consentEnds() throws {
    let world = try World { $0.consentGrace = .seconds(20) }
    let (alice, bob) = try call(world)
    bob.answersChecks = false
    world.run(for: .milliseconds(30_500))
    let before = world.sentByteCounts[bob.address, default: 0]
    try ForwardingTests.send(10, from: alice, track: 1, in: world)
    world.run(for: .seconds(10))
    #expect(world.sentByteCounts[bob.address, default: 0] == before)
    world.run(for: .seconds(20))
    #expect(alice.updates(of: "bob").last?.state == .disconnected)
  }
}

extension World {
  /// A check for the participant, as an attacker who knows its credentials would send it, with a forged source.
  func check(_ participant: Participant, _ change: (inout STUNMessage) -> Void = { _ in }) -> [UInt8] {
    let local = participant.transport.ice.local
    var request = STUNMessage(.request, transactionID: STUNTransactionID(using: &random))
    request.username = Array("\(local.usernameFragment):x".utf8)
    request.priority = 1
    request.role = .controlling(tieBreaker: 3)
    change(&request)
    return request.encoded(integrityKey: Array(local.password.utf8))
  }

  /// Somebody by identity, for what only the worker knows.
  func participant(_ identity: String) -> Participant? {
    worker.participants.first { $0.identity == identity }
  }

  func isServed(_ address: SocketAddress) -> Bool { worker.isServed(address) }
}
