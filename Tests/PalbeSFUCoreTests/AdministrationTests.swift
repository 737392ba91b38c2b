import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeUnits
import Testing

/// What an operator does to rooms and participants (livekit-protocol, section 2), and what webhooks tell.
struct AdministrationTests {
  private func refusal(_ answer: RoomAnswer?) -> RoomRefusal? {
    if case .refused(let reason)? = answer { reason } else { nil }
  }

  @Test("CreateRoom: settings stay, the room waits empty_timeout for somebody, then departure_timeout")
  func create() throws {
    let world = try World()
    var settings = RoomSettings(name: "room")
    settings.emptyTimeout = 60
    settings.departureTimeout = 5
    settings.maxParticipants = 1
    settings.metadata = "about"
    guard case .room(let room)? = world.command(.create(settings)) else {
      Issue.record("no room")
      return
    }
    #expect(room.name == "room" && room.sid.hasPrefix("RM_") && room.metadata == "about")
    #expect(room.emptyTimeout == 60 && room.departureTimeout == 5 && room.maxParticipants == 1)
    world.run(for: .seconds(59))
    let alice = try world.client("alice")
    world.join(alice)
    #expect(alice.join?.room?.sid == room.sid)
    #expect(alice.join?.room?.metadata == "about")
    let bob = try world.client("bob")
    world.join(bob)
    #expect(bob.leaves.map(\.reason) == [.joinFailure])
    world.signal(.leave(LiveKit.LeaveRequest()), from: alice)
    world.run(for: .seconds(4))
    #expect(world.command(.list(names: ["room"])) == .rooms([room]))
    world.run(for: .seconds(2))
    #expect(world.command(.list(names: [])) == .rooms([]))
    #expect(world.notices.map(\.event) == [.roomStarted, .participantConnectionAborted, .roomFinished])
    _ = world.command(.create(settings))
    world.run(for: .seconds(61))
    #expect(world.command(.list(names: [])) == .rooms([]))
    #expect(world.worker.nextDeadline == nil)
  }

  @Test("Rooms are made by joining only where that is allowed")
  func autoCreate() throws {
    let world = try World(configuration: { $0.createsRooms = false })
    let alice = try world.client("alice")
    world.join(alice)
    #expect(alice.leaves.map(\.reason) == [.joinFailure])
    _ = world.command(.create(RoomSettings(name: "room")))
    let bob = try world.client("bob")
    world.join(bob)
    #expect(bob.join != nil)
  }

  @Test("DeleteRoom: everyone leaves with ROOM_DELETED")
  func delete() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    #expect(world.command(.delete(room: "room")) == .done)
    for client in [alice, bob] {
      #expect(client.leaves.map(\.reason) == [.roomDeleted])
      #expect(client.leaves.map(\.action) == [.disconnect])
      #expect(client.isClosed)
    }
    #expect(refusal(world.command(.delete(room: "room"))) == .noSuchRoom)
    #expect(world.notices.last?.event == .roomFinished)
  }

  @Test("ListParticipants and GetParticipant tell what members see; the unknown is refused by name")
  func list() throws {
    let world = try World()
    let (alice, _) = try call(world)
    guard case .participants(let list)? = world.command(.listParticipants(room: "room")),
      case .participant(let one)? = world.command(.participant(room: "room", identity: "alice"))
    else {
      Issue.record("no answer")
      return
    }
    #expect(list.map(\.identity) == ["alice", "bob"])
    #expect(one.sid == alice.join?.participant?.sid)
    #expect(one.tracks.count == 2)
    #expect(refusal(world.command(.participant(room: "x", identity: "alice"))) == .noSuchRoom)
    #expect(refusal(world.command(.participant(room: "room", identity: "x"))) == .noSuchParticipant)
  }

  @Test("RemoveParticipant: PARTICIPANT_REMOVED, and the others see it go")
  func remove() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    #expect(world.command(.remove(room: "room", identity: "alice")) == .done)
    #expect(alice.leaves.map(\.reason) == [.participantRemoved])
    #expect(alice.isClosed)
    #expect(bob.updates(of: "alice").last?.state == .disconnected)
    #expect(bob.updates(of: "alice").last?.disconnectReason == .participantRemoved)
    #expect(world.notices.last?.event == .participantLeft)
    #expect(world.notices.last?.participant?.identity == "alice")
  }

  @Test("MutePublishedTrack: the publisher is asked, others are told; unmuting is the publisher's alone")
  func mute() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let sid = alice.updates(of: "alice").last?.tracks.first?.sid ?? ""
    guard
      case .track(let track)? = world.command(
        .mute(room: "room", identity: "alice", track: sid, isMuted: true))
    else {
      Issue.record("no track")
      return
    }
    #expect(track.muted && track.sid == sid)
    let asked = alice.messages.compactMap { if case .mute(let request) = $0 { request } else { nil } }
    #expect(asked.map(\.sid) == [sid] && asked.allSatisfy(\.muted))
    #expect(bob.updates(of: "alice").last?.tracks.first { $0.sid == sid }?.muted == true)
    let unmute = RoomCommand.mute(room: "room", identity: "alice", track: sid, isMuted: false)
    #expect(refusal(world.command(unmute)) == .mayNotUnmute)
    let unknown = RoomCommand.mute(room: "room", identity: "alice", track: "TR_x", isMuted: true)
    #expect(refusal(world.command(unknown)) == .noSuchTrack)
  }

  @Test("UpdateParticipant: texts are merged; a permission that is taken away works at once, and back again")
  func update() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    var change = ParticipantChange()
    change.name = "Alice A."
    change.attributes = ["a": "1", "b": ""]
    guard
      case .participant(let info)? = world.command(.update(room: "room", identity: "alice", change))
    else {
      Issue.record("no participant")
      return
    }
    #expect(info.name == "Alice A." && info.attributes == ["a": "1"])
    #expect(bob.updates(of: "alice").last?.name == "Alice A.")

    change = ParticipantChange()
    change.permission = .with { $0.canPublish = true }
    _ = world.command(.update(room: "room", identity: "bob", change))
    let before = bob.packets.count
    try ForwardingTests.send(3, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets.count == before)
    #expect(world.tokens.last?.grant.canSubscribe == false)
    change.permission = .with { $0.canSubscribe = true }
    _ = world.command(.update(room: "room", identity: "bob", change))
    world.run(for: .seconds(1))
    try ForwardingTests.send(3, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets.count == before + 6)

    _ = world.command(.update(room: "room", identity: "alice", change))
    #expect(bob.updates(of: "alice").last?.tracks.isEmpty == true)
    let withdrawn = alice.messages.count { if case .trackUnpublished = $0 { true } else { false } }
    #expect(withdrawn == 2)
    change.metadata = String(repeating: "x", count: 512 * 1_024 + 1)
    #expect(
      refusal(world.command(.update(room: "room", identity: "alice", change))) == .tooLong(field: "metadata"))
  }

  @Test("Metadata: 512 KiB each, 8 MiB in a room, so that who joins can be told; attributes 64 KiB")
  func texts() throws {
    let world = try World()
    let most = String(repeating: "x", count: 512 * 1_024)
    var change = ParticipantChange()
    change.metadata = most
    for index in 0..<17 {
      world.join(try world.client("p\(index)"))
      let answer = world.command(.update(room: "room", identity: "p\(index)", change))
      // The room has as much as it may.
      #expect((refusal(answer) == nil) == (index < 16), "\(index)")
    }
    let late = try world.client("late")
    world.join(late) { $0.metadata = "more" }
    #expect(late.join?.otherParticipants.map(\.metadata.utf8.count).reduce(0, +) == 16 * most.utf8.count)
    #expect(late.join?.participant?.metadata == "")
    change = ParticipantChange()
    change.attributes = ["a": String(repeating: "x", count: 64 * 1_024)]
    #expect(
      refusal(world.command(.update(room: "room", identity: "p16", change))) == .tooLong(field: "attributes"))
  }

  @Test("A participant's own metadata counts by its size: who says much is refused for a while")
  func ownTexts() throws {
    let world = try World()
    let alice = try world.client("alice")
    world.join(alice) { $0.canUpdateOwnMetadata = true }
    let update = LiveKit.UpdateParticipantMetadata.with {
      $0.metadata = String(repeating: "x", count: 300 * 1_024)
      $0.requestId = 7
    }
    func reasons() -> [LiveKit.RequestResponse.Reason] {
      alice.messages.compactMap { if case .requestResponse(let answer) = $0 { answer.reason } else { nil } }
    }
    for _ in 0..<5 { world.signal(.updateMetadata(update), from: alice) }
    #expect(reasons() == [.ok, .ok, .ok, .limitExceeded, .limitExceeded])
    #expect(alice.leaves.isEmpty)
    world.run(for: .seconds(4))
    world.signal(.updateMetadata(update), from: alice)
    #expect(reasons().last == .ok)
  }

  @Test(
    "MoveParticipant: a token for the other room, then leave RECONNECT with reason MIGRATION; others see it go"
  )
  func move() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    var change = ParticipantChange()
    change.name = "Alice A."
    _ = world.command(.update(room: "room", identity: "alice", change))
    let command = RoomCommand.move(room: "room", identity: "alice", destination: "other")
    #expect(world.command(command) == .done)
    let token = try #require(world.tokens.last)
    #expect(token.connection == alice.connection)
    #expect(token.grant.room == "other" && token.grant.identity == "alice" && token.grant.name == "Alice A.")
    #expect(alice.leaves.map(\.action) == [.reconnect] && alice.leaves.map(\.reason) == [.migration])
    #expect(bob.updates(of: "alice").last?.state == .disconnected)
    #expect(refusal(world.command(command)) == .noSuchParticipant)
    // Its signaling is lost for now: there is nobody to tell.
    world.cut(bob)
    let other = RoomCommand.move(room: "room", identity: "bob", destination: "other")
    #expect(refusal(world.command(other)) == .notReachable)
  }

  @Test("UpdateSubscriptions and UpdateRoomMetadata")
  func subscribe() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let sids = alice.updates(of: "alice").last?.tracks.map(\.sid) ?? []
    let command = RoomCommand.subscribe(room: "room", identity: "bob", tracks: sids, isSubscribed: false)
    #expect(world.command(command) == .done)
    let before = bob.packets.count
    try ForwardingTests.send(3, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets.count == before)
    _ = world.command(.setMetadata(room: "room", metadata: "new"))
    for client in [alice, bob] {
      let rooms = client.messages.compactMap { message -> LiveKit.Room? in
        if case .roomUpdate(let update) = message { update.room } else { nil }
      }
      #expect(rooms.map(\.metadata) == ["new"])
    }
  }

  @Test("refresh_token: soon after the join, then every five minutes, with the present grant")
  func tokens() throws {
    let world = try World()
    let (alice, _) = try call(world)
    #expect(world.tokens.filter { $0.connection == alice.connection }.count == 1)
    world.run(for: .seconds(601))
    let own = world.tokens.filter { $0.connection == alice.connection }
    #expect(own.count == 3)
    #expect(own.allSatisfy { $0.grant.identity == "alice" && $0.grant.room == "room" })
  }

  @Test(
    "refresh_token: who changes what it is called or tells of itself gets a token with that, for its next session"
  )
  func tokensOfChanges() throws {
    let world = try World()
    let alice = try world.client("alice")
    world.join(alice, grant: { $0.canUpdateOwnMetadata = true })
    let update = LiveKit.UpdateParticipantMetadata.with {
      $0.name = "Alice"
      $0.metadata = "new"
      $0.attributes = ["a": "1"]
    }
    world.run(for: .milliseconds(10))
    let before = world.tokens.count
    for _ in 0..<10 { world.signal(.updateMetadata(update), from: alice) }
    world.run(for: .milliseconds(900))
    #expect(world.tokens.count == before)
    world.run(for: .milliseconds(110))
    #expect(world.tokens.count == before + 1)
    #expect(world.tokens.last?.grant.name == "Alice" && world.tokens.last?.grant.metadata == "new")
    #expect(world.tokens.last?.grant.attributes == ["a": "1"])
    var change = ParticipantChange()
    change.name = "A."
    // More than a request line should carry: the token says what it was made with.
    change.metadata = String(repeating: "x", count: 5_000)
    _ = world.command(.update(room: "room", identity: "alice", change))
    world.run(for: .milliseconds(10))
    #expect(world.tokens.last?.grant.name == "A." && world.tokens.last?.grant.metadata == "")
    #expect(world.tokens.last?.grant.canUpdateOwnMetadata == true)
  }

  @Test("Webhooks: a room's life in order, each notice with its room and what it is about")
  func notices() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    world.signal(.leave(LiveKit.LeaveRequest()), from: alice)
    world.signal(.leave(LiveKit.LeaveRequest()), from: bob)
    world.run(for: .seconds(21))
    #expect(
      world.notices.map(\.event) == [
        .roomStarted, .trackPublished, .trackPublished, .participantJoined, .participantJoined,
        .participantLeft, .participantLeft, .roomFinished,
      ])
    #expect(world.notices.allSatisfy { $0.room.name == "room" && $0.createdAt >= 1_760_000_000 })
    #expect(world.notices[1].track?.sid.hasPrefix("TR_") == true)
  }
}
