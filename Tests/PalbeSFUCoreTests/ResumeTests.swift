import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeSFUCore
import PalbeUnits
import Testing

/// A broken WebSocket and its successor (livekit-protocol, section 1.6).
struct ResumeTests {
  @Test("Resume: reconnect first, then a snapshot with oneself, then the room; media never stops")
  func resume() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    try ForwardingTests.send(2, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    let before = bob.packets(payloadType: 96).count
    world.cut(bob)
    world.run(for: .seconds(3))
    try ForwardingTests.send(2, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 96).count == before + 4)
    #expect(alice.updates(of: "bob").last?.state != .disconnected)

    bob.messages = bob.messages.filter { if case .join = $0 { true } else { false } }
    let kept = bob.messages.count
    world.resume(bob)
    let messages = bob.messages[kept...]
    guard case .reconnect(let response)? = messages.first else {
      Issue.record("the first message is no reconnect")
      return
    }
    #expect(response.serverInfo?.protocol == 17)
    guard case .update(let snapshot)? = messages.dropFirst().first else {
      Issue.record("the second message is no update")
      return
    }
    #expect(Set(snapshot.participants.map(\.identity)) == ["alice", "bob"])
    guard case .roomUpdate(let update)? = messages.dropFirst(2).first else {
      Issue.record("the third message is no room update")
      return
    }
    #expect(update.room?.sid == bob.join?.room?.sid)
    // Signaling works again.
    world.signal(.ping(1), from: bob)
    guard case .pong? = bob.messages.last else {
      Issue.record("no pong")
      return
    }
    world.run(for: .seconds(120))
    #expect(!bob.isClosed)
  }

  @Test("Resume: the snapshot tells who left meanwhile, unless they are back; nobody from before the join")
  func departures() throws {
    let world = try World()
    func join(_ identity: String) throws -> ScriptedClient {
      let client = try world.client(identity)
      world.join(client, grant: { $0.metadata = "about \(identity)" })
      try #require(world.connect(client))
      return client
    }
    let early = try join("early")
    let alice = try join("alice")
    world.signal(.leave(LiveKit.LeaveRequest()), from: early)
    world.run(for: .seconds(1))
    let bob = try join("bob")
    let dora = try join("dora")
    let ghost = try world.client("ghost")
    world.join(ghost, grant: { $0.hidden = true })
    world.cut(bob)
    bob.messages = bob.messages.filter { if case .join = $0 { true } else { false } }
    for client in [alice, dora, ghost] { world.signal(.leave(LiveKit.LeaveRequest()), from: client) }
    let back = try join("dora")
    world.resume(bob)
    let snapshot = bob.messages.compactMap { message -> [LiveKit.ParticipantInfo]? in
      if case .update(let update) = message { update.participants } else { nil }
    }
    let told = try #require(snapshot.first)
    #expect(told.map(\.identity).sorted() == ["alice", "bob", "dora"])
    let gone = try #require(told.first { $0.identity == "alice" })
    #expect(gone.state == .disconnected && gone.disconnectReason == .clientInitiated)
    #expect(gone.sid == alice.join?.participant?.sid && gone.metadata.isEmpty && gone.tracks.isEmpty)
    #expect(told.first { $0.identity == "dora" }?.sid == back.join?.participant?.sid)
    // Long after nobody asks any more.
    world.run(for: .seconds(80))
    world.signal(.leave(LiveKit.LeaveRequest()), from: back)
    world.cut(bob)
    bob.messages = bob.messages.filter { if case .join = $0 { true } else { false } }
    world.resume(bob)
    #expect(bob.updates(of: "alice").isEmpty && bob.updates(of: "dora").last?.state == .disconnected)
  }

  @Test("Resume: an offer with new credentials restarts ICE, and media goes on over the new path")
  func restart() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    // Its network was away for so long that consent expired.
    bob.answersChecks = false
    #expect(world.run(for: .seconds(32)) { bob.isClosed })
    world.run(for: .seconds(2))
    bob.answersChecks = true
    world.resume(bob)
    bob.restartICE(at: world.now, using: &world.random)
    world.signal(.syncState(LiveKit.SyncState()), from: bob)
    world.signal(.offer(bob.offerMessage()), from: bob)
    world.run(for: .seconds(3))
    let before = bob.packets(payloadType: 96).count
    try ForwardingTests.send(3, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 96).count == before + 6)
    world.run(for: .seconds(60))
    #expect(!bob.isClosed)
    #expect(alice.updates(of: "bob").last?.state == .active)
    #expect(world.reuses == 0)
  }

  @Test("Resume without a restart of ICE after consent expired: told again to resume, then gone")
  func withoutRestart() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    bob.answersChecks = false
    #expect(world.run(for: .seconds(32)) { bob.isClosed })
    world.resume(bob)
    #expect(!world.run(for: .seconds(14)) { bob.isClosed })
    #expect(world.run(for: .seconds(2)) { bob.isClosed })
    #expect(world.run(for: .seconds(6)) { alice.updates(of: "bob").last?.state == .disconnected })
  }

  @Test("kill -9: a client without WebSocket and without checks is gone after 7.5 s")
  func gone() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    bob.answersChecks = false
    world.cut(bob)
    let isGone = { alice.updates(of: "bob").last?.state == .disconnected }
    #expect(!world.run(for: .seconds(2), until: isGone))
    #expect(world.run(for: .milliseconds(5_600), until: isGone))
    #expect(alice.updates(of: "bob").last?.disconnectReason == .signalClose)
  }

  @Test("Resume over a half-open connection: the old one is closed, and its later end does no harm")
  func halfOpen() throws {
    let world = try World()
    let (_, bob) = try call(world)
    let old = bob.connection
    world.resume(bob)
    world.handle(.closed(old))
    world.run(for: .seconds(30))
    #expect(!bob.isClosed)
    #expect(bob.leaves.isEmpty)
  }

  @Test("Resume under another sid is refused; the session itself goes on")
  func otherSid() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let stranger = try world.client("alice")
    world.resume(stranger, sid: "PA_somebodyelse")
    #expect(stranger.leaves.map(\.reason) == [.stateMismatch])
    #expect(stranger.leaves.map(\.action) == [.reconnect])
    #expect(!alice.isClosed)
    world.run(for: .seconds(30))
    #expect(!alice.isClosed && !bob.isClosed)
  }

  @Test("sync_state with an unknown published track: everything from the start")
  func unknownTrack() throws {
    let world = try World()
    let (alice, _) = try call(world)
    world.cut(alice)
    world.resume(alice)
    world.signal(
      .syncState(
        .with { state in state.publishTracks = [.with { $0.track = .with { $0.sid = "TR_unknown" } }] }),
      from: alice)
    #expect(alice.leaves.map(\.reason) == [.stateMismatch])
    #expect(alice.leaves.map(\.action) == [.reconnect])
  }

  @Test("LiveKit protocol §4 (12): sync_state cannot unsubscribe; what the client disabled stays so")
  func bogusUnsubscribe() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    try ForwardingTests.send(1, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    let sids = alice.updates(of: "alice").last?.tracks.map(\.sid) ?? []
    #expect(sids.count == 2)
    world.cut(bob)
    world.resume(bob)
    world.signal(
      .syncState(
        .with { state in
          state.subscription = .with {
            $0.trackSids = sids
            $0.subscribe = false
          }
        }), from: bob)
    let before = bob.packets(payloadType: 96).count
    try ForwardingTests.send(2, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 96).count == before + 4)
    world.signal(.syncState(.with { $0.trackSidsDisabled = sids }), from: bob)
    try ForwardingTests.send(2, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 96).count == before + 4)
  }

  @Test("A resumed participant learns who came and who left meanwhile")
  func snapshot() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    world.cut(bob)
    world.signal(.leave(.with { $0.reason = .clientInitiated }), from: alice)
    let carol = try world.client("carol")
    carol.tracks = [world.track("cam2", .video)]
    world.join(carol)
    #expect(world.connect(carol))
    bob.messages = []
    world.resume(bob, sid: "")
    guard case .update(let snapshot)? = bob.messages.dropFirst().first else {
      Issue.record("no snapshot")
      return
    }
    let present = snapshot.participants.filter { $0.state != .disconnected }
    #expect(Set(present.map(\.identity)) == ["carol", "bob"])
    // What was published meanwhile still finds its section.
    world.run(for: .seconds(1))
    try ForwardingTests.send(1, from: carol, track: 0, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 96).count == 2)
  }

  @Test("A WebSocket that breaks before the transport is up ends the participant")
  func beforeConnected() throws {
    let world = try World()
    let alice = try world.client("alice")
    let bob = try world.client("bob")
    world.join(alice)
    world.join(bob)
    world.handle(.closed(alice.connection))
    #expect(bob.updates(of: "alice").last?.state == .disconnected)
  }
}
