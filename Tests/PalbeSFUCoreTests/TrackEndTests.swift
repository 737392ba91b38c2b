import PalbeLiveKit
import PalbeProtobuf
import PalbeSDP
import PalbeUnits
import Testing

@testable import PalbeSFUCore

/// With one connection the client offers, and nothing but a request of ours makes it see that a track has ended.
@Suite("livekit-protocol.md §1.2 (7): a section whose track ended goes inactive, and is used again")
struct TrackEndTests {
  enum Ending: CaseIterable { case unsubscribed, byOperator, unpublished, revoked, mayNotSubscribe, departed }

  private func subscription(_ sid: String, _ isWanted: Bool) -> LiveKit.SignalRequest.Message {
    .subscription(
      .with {
        $0.trackSids = [sid]
        $0.subscribe = isWanted
      })
  }

  private func end(
    _ ending: Ending, _ sid: String, of alice: ScriptedClient, for bob: ScriptedClient, in world: World
  ) {
    switch ending {
    case .unsubscribed: world.signal(subscription(sid, false), from: bob)
    case .byOperator:
      let command = RoomCommand.subscribe(room: "room", identity: "bob", tracks: [sid], isSubscribed: false)
      #expect(world.command(command) == .done)
    case .unpublished:
      alice.retiredCids = ["cam"]
      world.signal(.offer(alice.offerMessage()), from: alice)
    case .revoked:
      world.signal(.subscriptionPermission(LiveKit.SubscriptionPermission()), from: alice)
    case .mayNotSubscribe:
      var change = ParticipantChange()
      change.permission = .with { $0.canPublish = true }
      _ = world.command(.update(room: "room", identity: "bob", change))
    case .departed: world.signal(.leave(LiveKit.LeaveRequest()), from: alice)
    }
  }

  @Test("The client is asked for an offer once, however the track ends", arguments: Ending.allCases)
  private func asks(_ ending: Ending) throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let sid = try #require(bob.join?.otherParticipants.first?.tracks.last?.sid)
    #expect(bob.answer?.media[1].direction == .sendonly && bob.requirements.isEmpty)
    end(ending, sid, of: alice, for: bob, in: world)
    #expect(world.run(for: .milliseconds(300)) { !bob.requirements.isEmpty })
    world.run(for: .seconds(3))
    // Sections are not asked for, and both tracks of who left are in one offer.
    #expect(bob.requirements == [LiveKit.MediaSectionsRequirement()])
    #expect(bob.answer?.media[1].direction == .inactive && bob.answer?.media[1].msids.isEmpty == true)
    #expect(bob.answers.last?.midToTrackId.values.contains(sid) == false)
    // The next track of the kind takes the section.
    let carol = try world.client("carol")
    carol.tracks = [world.track("screen", .video)]
    world.join(carol)
    world.run(for: .seconds(1))
    if ending != .mayNotSubscribe {
      let next = try #require(carol.updates(of: "carol").last?.tracks.first?.sid)
      #expect(bob.answers.last?.midToTrackId["v0"] == next && bob.videoSections == 1)
    }
  }

  @Test("A track that takes the place of another gets a section of its own: the old one rests for an answer")
  func replacement() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("one", .video), world.track("two", .video)]
    world.join(alice)
    let bob = try world.client("bob")
    world.join(bob, request: { $0.connectionSettings = .with { $0.autoSubscribe = false } })
    #expect(world.connect(alice) && world.connect(bob))
    let sids = try #require(bob.join?.otherParticipants.first?.tracks.map(\.sid))
    world.signal(subscription(sids[0], true), from: bob)
    #expect(bob.answers.last?.midToTrackId == ["v0": sids[0]])
    var shown = 0
    for _ in 0..<6 {
      world.signal(subscription(sids[shown], false), from: bob)
      shown = 1 - shown
      world.signal(subscription(sids[shown], true), from: bob)
      world.run(for: .seconds(1))
      #expect(bob.answers.last?.midToTrackId.values.sorted() == [sids[shown]])
    }
    #expect(bob.videoSections == 2)
    // In no two answers in a row does a section have different streams.
    let answers = try bob.answers.map { try SessionDescription(parsing: $0.sdp) }
    for (before, after) in zip(answers, answers.dropFirst()) {
      for (old, new) in zip(before.media, after.media) where old.mid == new.mid {
        #expect(old.msids.isEmpty || new.msids.isEmpty || old.msids == new.msids)
      }
    }
    let errors = bob.messages.count { if case .subscriptionResponse = $0 { true } else { false } }
    #expect(errors == 0)
  }

  @Test("A client that was away offers by itself: it is not asked for what its signaling lost")
  func resumed() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let sid = try #require(bob.join?.otherParticipants.first?.tracks.last?.sid)
    world.cut(bob)
    end(.unpublished, sid, of: alice, for: bob, in: world)
    world.run(for: .seconds(1))
    world.resume(bob)
    bob.restartICE(at: world.now, using: &world.random)
    world.signal(.offer(bob.offerMessage()), from: bob)
    world.run(for: .seconds(2))
    #expect(bob.answer?.media[1].direction == .inactive && bob.requirements.isEmpty)
  }
}
