import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeUnits
import Testing

/// Participants that are no people, and what a token says of its room (livekit-protocol, JWT).
struct KindTests {
  @Test("kind, its details and the grants of agents and recorders are told to others")
  func told() throws {
    let world = try World()
    let alice = try world.client("alice")
    world.join(alice)
    let agent = try world.client("agent")
    world.join(
      agent,
      grant: {
        $0.kind = .agent
        $0.kindDetails = [.cloudAgent]
        $0.isAgent = true
        $0.canManageAgentSession = true
      })
    let info = try #require(alice.updates(of: "agent").last)
    #expect(info.kind == .agent && info.kindDetails == [.cloudAgent])
    #expect(info.permission?.agent == true && info.permission?.canManageAgentSession == true)
    #expect(info.permission?.recorder == false)
    #expect(agent.join?.otherParticipants.first?.kind == .standard)
    #expect(agent.join?.room?.activeRecording == false)
    let recorder = try world.client("recorder")
    world.join(recorder, grant: { $0.isRecorder = true })
    #expect(recorder.join?.room?.activeRecording == true)
    #expect(alice.updates(of: "recorder").last?.permission?.recorder == true)
  }

  @Test("a recorder receives what a publisher keeps from everybody")
  func recorder() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("mic", .audio)]
    world.join(alice)
    world.signal(.subscriptionPermission(LiveKit.SubscriptionPermission()), from: alice)
    let bob = try world.client("bob")
    world.join(bob)
    let egress = try world.client("egress")
    world.join(egress, grant: { $0.kind = .egress })
    #expect(bob.answers.allSatisfy { $0.midToTrackId.isEmpty })
    #expect(egress.answers.last?.midToTrackId.isEmpty == false)
  }

  @Test("agents and recorders keep no room: they are told to leave after the last person has")
  func dependents() throws {
    let world = try World { $0.departureTimeout = .seconds(20) }
    let alice = try world.client("alice")
    world.join(alice)
    let agent = try world.client("agent")
    world.join(agent, grant: { $0.kind = .agent })
    try #require(world.connect(alice) && world.connect(agent))
    #expect(agent.join?.room?.numParticipants == 1)
    world.run(for: .seconds(60))
    #expect(!agent.isClosed)
    world.signal(.leave(LiveKit.LeaveRequest()), from: alice)
    world.run(for: .seconds(15))
    // Somebody comes back in time.
    let bob = try world.client("bob")
    world.join(bob)
    try #require(world.connect(bob))
    world.run(for: .seconds(60))
    #expect(!agent.isClosed)
    world.signal(.leave(LiveKit.LeaveRequest()), from: bob)
    world.run(for: .seconds(19))
    #expect(!agent.isClosed)
    world.run(for: .seconds(2))
    #expect(agent.leaves.map(\.reason) == [.roomClosed] && agent.leaves.map(\.action) == [.disconnect])
    #expect(world.command(.list(names: [])) == .rooms([]))
    #expect(world.notices.last?.event == .roomFinished)
  }

  @Test("an agent that comes first waits for people as an empty room does, and takes nobody's place")
  func first() throws {
    let world = try World {
      $0.emptyTimeout = .seconds(30)
      $0.maxParticipantsPerRoom = 1
    }
    let agent = try world.client("agent")
    world.join(agent, grant: { $0.kind = .agent })
    let alice = try world.client("alice")
    world.join(alice)
    let bob = try world.client("bob")
    world.join(bob)
    #expect(alice.leaves.isEmpty && bob.leaves.map(\.reason) == [.joinFailure])
    let second = try world.client("second")
    world.join(second, grant: { $0.kind = .agent })
    #expect(second.leaves.isEmpty)
    let alone = try world.client("alone")
    world.join(
      alone,
      grant: {
        $0.room = "other"
        $0.kind = .agent
      })
    try #require(world.connect(alone))
    world.run(for: .seconds(29))
    #expect(!alone.isClosed)
    world.run(for: .seconds(2))
    #expect(alone.leaves.map(\.reason) == [.roomClosed])
  }

  @Test(
    "room_update: how many are there is told within 5 s of a change, a recording that begins or ends at once")
  func counts() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    func rooms(_ client: ScriptedClient) -> [LiveKit.Room] {
      client.messages.compactMap { if case .roomUpdate(let update) = $0 { update.room } else { nil } }
    }
    #expect(alice.join?.room?.numParticipants == 1 && rooms(alice).isEmpty)
    world.run(for: .seconds(6))
    #expect(rooms(alice).map(\.numParticipants) == [2] && rooms(alice).last?.numPublishers == 1)
    let recorder = try world.client("recorder")
    world.join(recorder, grant: { $0.isRecorder = true })
    world.run(for: .milliseconds(10))
    #expect(rooms(bob).last?.activeRecording == true)
    world.signal(.leave(LiveKit.LeaveRequest()), from: recorder)
    world.run(for: .milliseconds(10))
    #expect(rooms(bob).last?.activeRecording == false)
    let before = rooms(bob).count
    for name in ["carol", "dave"] { world.join(try world.client(name)) }
    world.run(for: .seconds(20))
    #expect(rooms(bob).count == before + 1 && rooms(bob).last?.numParticipants == 4)
  }

  @Test("roomConfig in a token makes the room as it says, and changes none that is there")
  func roomConfiguration() throws {
    let world = try World()
    let alice = try world.client("alice")
    func settings(_ seconds: UInt32) -> RoomSettings {
      var settings = RoomSettings(name: "another name")
      settings.emptyTimeout = seconds
      settings.departureTimeout = seconds
      settings.maxParticipants = 2
      settings.metadata = "made by a token"
      return settings
    }
    world.join(alice, grant: { $0.roomSettings = settings(7) })
    let room = try #require(alice.join?.room)
    #expect(room.name == "room" && room.emptyTimeout == 7 && room.departureTimeout == 7)
    #expect(room.maxParticipants == 2 && room.metadata == "made by a token")
    let bob = try world.client("bob")
    world.join(bob, grant: { $0.roomSettings = settings(9) })
    #expect(bob.join?.room?.departureTimeout == 7)
    let carol = try world.client("carol")
    world.join(carol)
    #expect(carol.leaves.map(\.reason) == [.joinFailure])
  }
}
