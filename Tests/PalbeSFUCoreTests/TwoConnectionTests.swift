import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeSDP
import PalbeSFUCore
import PalbeUnits
import Testing

/// The older protocol, `/rtc`: the client offers what it sends, the server what the client receives.
struct TwoConnectionTests {
  /// Joins without an offer; publishes later over its own connection.
  private func join(
    _ world: World, _ identity: String, canSubscribe: Bool = true
  ) throws -> ScriptedClient {
    let client = try world.client(identity)
    client.receiver = try world.client(identity + " receiving")
    client.receiver?.pingsAutomatically = false
    client.audioSections = 0
    client.videoSections = 0
    var details = world.details(
      client, grant: { $0.canSubscribe = canSubscribe },
      request: { request in
        request.publisherOffer = nil
        request.addTrackRequests = []
      })
    details.usesTwoConnections = true
    world.handle(.join(client.connection, details))
    return client
  }

  private func publish(_ world: World, _ client: ScriptedClient) {
    for track in client.tracks { world.signal(.addTrack(client.addTrack(track)), from: client) }
    world.signal(.offer(client.offerMessage()), from: client)
  }

  @Test("LiveKit protocol §4 (11), v0: join comes first, then an offer of a data channel")
  func firstOffer() throws {
    let world = try World()
    let bob = try join(world, "bob")
    guard case .join(let response)? = bob.messages.first else {
      Issue.record("the first message is no join")
      return
    }
    #expect(response.subscriberPrimary)
    #expect(bob.offers.isEmpty)
    world.run(for: .milliseconds(15))
    #expect(bob.offers.map(\.id) == [1])
    let offer = try SessionDescription(parsing: bob.offers[0].sdp)
    #expect(offer.media.map(\.kind) == [.application])
    #expect(offer.isICELite)
    #expect(world.run(for: .seconds(5)) { bob.updates(of: "bob").last?.state == .active })
    #expect(bob.answers.isEmpty)
    world.run(for: .seconds(100))
    #expect(!bob.isClosed)
  }

  @Test("v0 publishes to v1 and v0, and v1 to v0; the update of a track comes before its offer")
  func mixed() throws {
    let world = try World()
    let dave = try join(world, "dave")
    dave.tracks = [world.track("mic", .audio), world.track("cam", .video)]
    publish(world, dave)
    let (alice, bob) = try call(world)
    let erin = try join(world, "erin")
    #expect(world.run(for: .seconds(5)) { dave.srtp != nil && erin.receiver?.isUp == true })
    world.run(for: .seconds(1))
    try ForwardingTests.send(3, from: dave, track: 1, in: world)
    try ForwardingTests.send(2, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(200))
    #expect(bob.packets(payloadType: 96).count == 10)
    #expect(alice.packets(payloadType: 96).count == 6)
    #expect(erin.receiver?.packets(payloadType: 96).count == 10)
    #expect(dave.receiver?.packets(payloadType: 96).count == 4)
    // Media to a client of two connections goes over its second one alone.
    #expect(dave.packets.isEmpty && erin.packets.isEmpty)
    #expect(world.reuses == 0)

    let sids = Set(alice.updates(of: "alice").last?.tracks.map(\.sid) ?? [])
    let update = dave.messages.firstIndex { message in
      if case .update(let update) = message {
        return update.participants.contains { !sids.isDisjoint(with: $0.tracks.map(\.sid)) }
      }
      return false
    }
    let offer = dave.messages.firstIndex { message in
      if case .offer(let offer) = message { return sids.contains { offer.sdp.contains($0) } }
      return false
    }
    #expect(try #require(update) < #require(offer))
  }

  @Test("v0: one msid per section, with participant and track; sections of gone tracks are used again")
  func sections() throws {
    let world = try World()
    let bob = try join(world, "bob")
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    world.join(alice)
    #expect(world.connect(alice))
    world.run(for: .seconds(1))
    let first = try SessionDescription(parsing: try #require(bob.offers.last).sdp)
    #expect(first.media.map(\.kind) == [.application, .video])
    let sid = alice.join?.participant?.sid ?? ""
    #expect(first.media[1].msids.map(\.stream).first?.hasPrefix(sid + "|TR_") == true)
    #expect(first.media[1].msids.count == 1)
    world.signal(.leave(LiveKit.LeaveRequest()), from: alice)
    world.run(for: .seconds(1))
    let second = try SessionDescription(parsing: try #require(bob.offers.last).sdp)
    #expect(second.media[1].direction == .inactive)
    #expect(second.media[1].msids.isEmpty)
    let carol = try world.client("carol")
    carol.tracks = [world.track("cam2", .video)]
    world.join(carol)
    #expect(world.connect(carol))
    world.run(for: .seconds(1))
    let third = try SessionDescription(parsing: try #require(bob.offers.last).sdp)
    #expect(third.media.count == 2)
    #expect(third.media[1].msids.first != first.media[1].msids.first)
    try ForwardingTests.send(2, from: carol, track: 0, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.receiver?.packets(payloadType: 96).count == 4)
  }

  @Test("RFC 8829 §5.2.2: who joins an empty room over v0 finds every section where it was in later offers")
  func sectionOrder() throws {
    let world = try World()
    let bob = try join(world, "bob")
    world.run(for: .seconds(1))
    for (name, kind) in [("alice", ScriptedTrack.Kind.video), ("carol", .audio)] {
      let publisher = try world.client(name)
      publisher.tracks = [world.track("track", kind)]
      world.join(publisher)
      #expect(world.connect(publisher))
      world.run(for: .seconds(1))
    }
    let mids = try bob.offers.map { try SessionDescription(parsing: $0.sdp).media.map(\.mid) }
    #expect(mids.map(\.count) == [1, 2, 3])
    for (before, after) in zip(mids, mids.dropFirst()) {
      #expect(Array(after.prefix(before.count)) == before)
    }
  }

  @Test("LiveKit protocol §4 (21), v0: a section rests before it is used again, under another stream")
  func reuse() throws {
    let world = try World()
    let bob = try join(world, "bob")
    let alice = try world.client("alice")
    alice.tracks = [world.track("screen", .video)]
    world.join(alice)
    #expect(world.connect(alice))
    world.run(for: .seconds(1))
    let sid = try #require(alice.updates(of: "alice").last?.tracks.first?.sid)
    func videoSections() throws -> [MediaSection] {
      let offer = try SessionDescription(parsing: try #require(bob.offers.last).sdp)
      return offer.media.filter { $0.kind == .video }
    }
    func subscribe(_ isWanted: Bool) {
      world.signal(
        .subscription(
          .with {
            $0.trackSids = [sid]
            $0.subscribe = isWanted
          }), from: bob)
    }
    let first = try #require(videoSections().first?.msids.first)
    #expect(first.track == sid && first.stream.hasSuffix("|" + sid))
    // At once: the old section is inactive beside a new one.
    subscribe(false)
    subscribe(true)
    world.run(for: .seconds(1))
    #expect(try videoSections().map(\.direction) == [.inactive, .sendonly])
    let second = try #require(videoSections()[1].msids.first)
    #expect(second.track == sid && second.stream != first.stream)
    // In its own time: the section it had, under another name.
    subscribe(false)
    world.run(for: .seconds(1))
    subscribe(true)
    world.run(for: .seconds(1))
    #expect(try videoSections().map(\.direction) == [.sendonly, .inactive])
    #expect(try Set([first, second, videoSections()[0].msids[0]].map(\.stream)).count == 3)
    // Another track in another offer than the one it replaces.
    let carol = try world.client("carol")
    carol.tracks = [world.track("screen", .video)]
    world.join(carol)
    world.signal(.leave(LiveKit.LeaveRequest()), from: alice)
    world.run(for: .seconds(1))
    #expect(try videoSections().map(\.direction) == [.inactive, .sendonly])
  }

  @Test("v0: one offer under way at a time; what changed meanwhile is in the next one")
  func oneAtATime() throws {
    let world = try World()
    let bob = try join(world, "dave")
    bob.answersOffers = false
    world.run(for: .milliseconds(50))
    let (alice, _) = try call(world)
    world.run(for: .seconds(2))
    #expect(bob.offers.map(\.id) == [1])
    bob.answersOffers = true
    let answer = try #require(bob.receiver).answer(try #require(bob.offers.last), at: world.now)
    world.signal(.answer(answer), from: bob)
    world.run(for: .seconds(1))
    #expect(bob.offers.map(\.id) == [1, 2])
    try ForwardingTests.send(2, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.receiver?.packets(payloadType: 96).count == 4)
  }

  @Test("v0: 15 s without an answer and the client must begin anew")
  func noAnswer() throws {
    let world = try World()
    let bob = try join(world, "bob")
    bob.answersOffers = false
    #expect(!world.run(for: .seconds(14)) { bob.isClosed })
    #expect(world.run(for: .seconds(2)) { bob.isClosed })
    #expect(bob.leaves.map(\.action) == [.reconnect])
  }

  @Test("v0: an answer of no offer, of an old one or of garbage starts nothing and harms nobody else")
  func strangeAnswers() throws {
    let world = try World()
    let (alice, carol) = try call(world)
    let bob = try join(world, "dave")
    let answer = LiveKit.SessionDescription.with {
      $0.type = "answer"
      $0.sdp = "v=0"
      $0.id = 7
    }
    world.signal(.answer(answer), from: bob)
    world.signal(.answer(answer), from: alice)
    world.run(for: .seconds(2))
    #expect(bob.updates(of: "dave").last?.state == .active)
    bob.answersOffers = false
    world.signal(.leave(LiveKit.LeaveRequest()), from: alice)
    world.run(for: .seconds(1))
    var garbage = answer
    garbage.id = bob.offers.last?.id ?? 0
    world.signal(.answer(garbage), from: bob)
    #expect(bob.isClosed)
    #expect(!carol.isClosed)
  }

  @Test("v0 without canSubscribe: the publishing connection is the primary one")
  func publishOnly() throws {
    let world = try World()
    let dave = try join(world, "dave", canSubscribe: false)
    dave.answersOffers = true
    #expect(dave.join?.subscriberPrimary == false)
    dave.tracks = [world.track("cam", .video)]
    publish(world, dave)
    #expect(world.connect(dave))
    #expect(world.run(for: .seconds(1)) { dave.updates(of: "dave").last?.state == .active })
    let bob = try world.client("bob")
    world.join(bob)
    #expect(world.connect(bob))
    try ForwardingTests.send(2, from: dave, track: 0, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 96).count == 4)
  }

  @Test("v0 resume: reconnect, the snapshot, then an offer that restarts ICE")
  func resume() throws {
    let world = try World()
    let (alice, _) = try call(world)
    let bob = try join(world, "dave")
    world.run(for: .seconds(2))
    let before = bob.offers.count
    let old = try SessionDescription(parsing: try #require(bob.offers.last).sdp)
    world.cut(bob)
    world.resume(bob)
    world.run(for: .seconds(1))
    #expect(bob.offers.count == before + 1)
    let new = try SessionDescription(parsing: try #require(bob.offers.last).sdp)
    #expect(new.transport?.iceUsernameFragment != old.transport?.iceUsernameFragment)
    #expect(new.media.count == old.media.count)
    // The old path carries media until the client nominates a new one.
    let count = bob.receiver?.packets(payloadType: 96).count ?? 0
    try ForwardingTests.send(2, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.receiver?.packets(payloadType: 96).count == count + 4)
  }
}
