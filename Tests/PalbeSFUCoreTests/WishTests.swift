import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeUnits
import Testing

@Suite("What a client wants to receive, whatever permissions change meanwhile (livekit protocol 1.5)")
struct WishTests {
  private func subscribe(_ world: World, _ client: ScriptedClient, _ sid: String, _ isWanted: Bool) {
    world.signal(
      .subscription(
        .with {
          $0.trackSids = [sid]
          $0.subscribe = isWanted
        }), from: client)
  }

  private func allow(_ world: World, _ isAllowed: Bool, by publisher: ScriptedClient) {
    world.signal(.subscriptionPermission(.with { $0.allParticipants = isAllowed }), from: publisher)
  }

  private func told(_ client: ScriptedClient) -> [LiveKit.SubscriptionPermissionUpdate] {
    client.messages.compactMap {
      if case .subscriptionPermissionUpdate(let update) = $0 { update } else { nil }
    }
  }

  /// How many packets of her camera reach the receiver, of two frames.
  private func packets(_ world: World, from alice: ScriptedClient, to receiver: ScriptedClient) throws -> Int
  {
    let before = receiver.packets(payloadType: 96).count
    try ForwardingTests.send(2, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    return receiver.packets(payloadType: 96).count - before
  }

  @Test("What a client gave back does not come again with a permission, its publisher's or an operator's")
  func unwanted() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let camera = try #require(bob.join?.otherParticipants.first?.tracks.last?.sid)
    subscribe(world, bob, camera, false)
    allow(world, true, by: alice)
    #expect(try packets(world, from: alice, to: bob) == 0)
    allow(world, false, by: alice)
    allow(world, true, by: alice)
    world.run(for: .seconds(1))
    #expect(try packets(world, from: alice, to: bob) == 0)
    for mayReceive in [false, true] {
      var change = ParticipantChange()
      change.permission = .with { $0.canSubscribe = mayReceive }
      _ = world.command(.update(room: "room", identity: "bob", change))
    }
    world.run(for: .seconds(1))
    #expect(try packets(world, from: alice, to: bob) == 0)
    // Her microphone, of which he said nothing, is there.
    world.send([try alice.media(0, payload: [1, 2, 3])], from: alice)
    world.run(for: .milliseconds(50))
    #expect(bob.packets(payloadType: 111).last?.payload == [1, 2, 3])
    subscribe(world, bob, camera, true)
    world.run(for: .seconds(1))
    #expect(try packets(world, from: alice, to: bob) == 4)
  }

  @Test(
    "What a client asked for by itself comes back when it is granted again, and once it is granted at all")
  func wanted() throws {
    let world = try World()
    let (alice, _) = try call(world)
    let carol = try world.client("carol")
    world.join(carol, request: { $0.connectionSettings = .with { $0.autoSubscribe = false } })
    #expect(world.connect(carol))
    let camera = try #require(carol.join?.otherParticipants.first?.tracks.last?.sid)
    allow(world, false, by: alice)
    #expect(told(carol).count == 2)
    subscribe(world, carol, camera, true)
    #expect(try packets(world, from: alice, to: carol) == 0)
    for _ in 0..<2 {
      allow(world, true, by: alice)
      world.run(for: .seconds(1))
      #expect(try packets(world, from: alice, to: carol) == 4)
      allow(world, false, by: alice)
      #expect(try packets(world, from: alice, to: carol) == 0)
    }
    // Of the microphone nobody spoke.
    #expect(carol.packets(payloadType: 111).isEmpty)
  }

  @Test("Who comes after a publisher's list learns that it may not have the tracks, once, and when it may")
  func late() throws {
    let world = try World()
    let (alice, _) = try call(world)
    allow(world, false, by: alice)
    let carol = try world.client("carol")
    world.join(carol)
    let sids = try #require(carol.join?.otherParticipants.first { $0.identity == "alice" }?.tracks.map(\.sid))
    #expect(told(carol).map(\.trackSid) == sids && told(carol).allSatisfy { !$0.allowed })
    #expect(told(carol).allSatisfy { $0.participantSid == alice.join?.participant?.sid })
    subscribe(world, carol, sids[0], true)
    allow(world, false, by: alice)
    #expect(told(carol).count == 2)
    let dave = try world.client("dave")
    world.join(dave, request: { $0.connectionSettings = .with { $0.autoSubscribe = false } })
    #expect(told(dave).isEmpty)
    subscribe(world, dave, sids[1], true)
    #expect(told(dave).map(\.trackSid) == [sids[1]])
    allow(world, true, by: alice)
    #expect(told(carol).map(\.allowed) == [false, false, true, true])
    #expect(told(dave).map(\.allowed) == [false, true])
  }
}
