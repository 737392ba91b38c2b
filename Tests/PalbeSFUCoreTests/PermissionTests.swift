import PalbeLiveKit
import PalbeProtobuf
import PalbeSDP
import PalbeSFUCore
import PalbeUnits
import Testing

struct PermissionTests {
  @Test("canPublish false: the request is NOT_ALLOWED and the section inactive")
  func publish() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("mic", .audio)]
    world.join(alice, grant: { $0.canPublish = false })
    #expect(alice.refusals.map(\.reason) == [.notAllowed])
    #expect(alice.answer?.media.last?.direction == .inactive)
    #expect(alice.join?.participant?.permission?.canPublish == false)
  }

  @Test("canPublishSources: only the named sources")
  func sources() throws {
    let world = try World()
    let alice = try world.client("alice")
    let bob = try world.client("bob")
    world.join(bob)
    alice.tracks = [world.track("mic", .audio), world.track("cam", .video)]
    world.join(alice, grant: { $0.canPublishSources = ["microphone"] })
    #expect(alice.refusals.map(\.reason) == [.notAllowed])
    #expect(bob.updates(of: "alice").last?.tracks.map(\.name) == ["mic"])
  }

  @Test("canSubscribe false: nothing is subscribed, asked for or not")
  func subscribe() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("mic", .audio)]
    world.join(alice)
    let bob = try world.client("bob")
    world.join(bob, grant: { $0.canSubscribe = false })
    let sid = try #require(bob.join?.otherParticipants.first?.tracks.first?.sid)
    world.signal(
      .subscription(
        .with {
          $0.trackSids = [sid]
          $0.subscribe = true
        }), from: bob)
    #expect(bob.requirements.isEmpty)
    #expect(bob.answers.allSatisfy { $0.midToTrackId.isEmpty })
  }

  @Test("1.5: who subscribes to a track that is not there is told")
  func unknownTrack() throws {
    let world = try World()
    let bob = try world.client("bob")
    world.join(bob)
    for subscribe in [true, false] {
      world.signal(
        .subscription(
          .with {
            $0.trackSids = ["TR_gone"]
            $0.subscribe = subscribe
          }), from: bob)
    }
    let told = bob.messages.compactMap { message -> LiveKit.SubscriptionResponse? in
      if case .subscriptionResponse(let response) = message { response } else { nil }
    }
    #expect(told.map(\.err) == [.trackNotfound] && told.map(\.trackSid) == ["TR_gone"])
  }

  @Test("hidden: nobody is told of the participant, and it sees the others")
  func hidden() throws {
    let world = try World()
    let alice = try world.client("alice")
    world.join(alice)
    let spy = try world.client("spy")
    world.join(spy, grant: { $0.hidden = true })
    let carol = try world.client("carol")
    world.join(carol)
    world.handle(.closed(spy.connection))
    #expect(alice.updates(of: "spy").isEmpty)
    #expect(carol.join?.otherParticipants.map(\.identity) == ["alice"])
    #expect(spy.join?.otherParticipants.map(\.identity) == ["alice"])
  }

  @Test("update_metadata needs canUpdateOwnMetadata; an empty attribute deletes its key")
  func metadata() throws {
    let world = try World()
    let alice = try world.client("alice")
    let bob = try world.client("bob")
    world.join(
      alice,
      grant: {
        $0.canUpdateOwnMetadata = true
        $0.attributes = ["a": "1", "b": "2"]
      })
    world.join(bob)
    let update = LiveKit.UpdateParticipantMetadata.with {
      $0.metadata = "new"
      $0.attributes = ["a": "", "c": "3"]
      $0.requestId = 9
    }
    world.signal(.updateMetadata(update), from: alice)
    #expect(alice.refusals.map(\.reason) == [.ok])
    #expect(alice.refusals.map(\.requestId) == [9])
    // A client repeats all that it knows of itself as soon as it is answered: it must know the new state by then.
    guard case .requestResponse? = alice.messages.last else {
      Issue.record("the answer comes before the update")
      return
    }
    #expect(alice.updates(of: "alice").last?.metadata == "new")
    #expect(bob.updates(of: "alice").last?.metadata == "new")
    #expect(bob.updates(of: "alice").last?.attributes == ["b": "2", "c": "3"])
    world.signal(.updateMetadata(update), from: bob)
    #expect(bob.refusals.map(\.reason) == [.notAllowed])
  }

  @Test("add_track: a cid in use is QUEUED, data tracks are UNSUPPORTED_TYPE, too many are LIMIT_EXCEEDED")
  func refusals() throws {
    let world = try World { $0.maxPendingTracks = 3 }
    let alice = try world.client("alice")
    world.join(alice)
    for number in 0..<4 {
      world.signal(.addTrack(alice.addTrack(world.track("\(number)", .audio))), from: alice)
    }
    world.signal(.addTrack(alice.addTrack(world.track("0", .audio))), from: alice)
    world.signal(
      .addTrack(
        .with {
          $0.cid = "d"
          $0.type = .data
        }), from: alice)
    world.signal(.addTrack(.with { $0.cid = String(repeating: "x", count: 1_000) }), from: alice)
    #expect(alice.refusals.map(\.reason) == [.limitExceeded, .queued, .unsupportedType, .invalidRequest])
    // One more codec for a track that is there.
    let published = alice.messages.compactMap {
      if case .trackPublished(let it) = $0 { it.track } else { nil }
    }
    world.signal(
      .addTrack(
        .with {
          $0.cid = "backup"
          $0.sid = published[0].sid
          $0.type = .video
        }), from: alice)
    #expect(alice.refusals.last?.reason == .unsupportedType)
  }

  @Test("Bounds: a room that is full refuses with JOIN_FAILURE")
  func full() throws {
    let world = try World { $0.maxParticipantsPerRoom = 1 }
    let alice = try world.client("alice")
    let bob = try world.client("bob")
    world.join(alice)
    world.join(bob)
    #expect(bob.leaves.map(\.reason) == [.joinFailure])
    #expect(bob.isClosed && bob.messages.count == 1)
  }

  @Test("subscription_permission: what is revoked stops at once, what is granted comes back")
  func subscriptionPermission() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    func updates() -> [Bool] {
      bob.messages.compactMap {
        if case .subscriptionPermissionUpdate(let update) = $0 { update.allowed } else { nil }
      }
    }
    world.signal(.subscriptionPermission(.with { $0.allParticipants = true }), from: alice)
    #expect(updates().isEmpty)
    world.signal(.subscriptionPermission(LiveKit.SubscriptionPermission()), from: alice)
    #expect(updates() == [false, false])
    try ForwardingTests.send(2, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets.isEmpty)
    let permission = LiveKit.TrackPermission.with {
      $0.participantIdentity = "bob"
      $0.allTracks = true
    }
    world.signal(.subscriptionPermission(.with { $0.trackPermissions = [permission] }), from: alice)
    #expect(updates() == [false, false, true, true])
    try ForwardingTests.send(2, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets.count == 4)
  }
}
