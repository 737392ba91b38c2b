import PalbeLiveKit
import PalbeProtobuf
import PalbeRTP
import PalbeSDP
import PalbeSFUCore
import PalbeUnits
import Testing

struct JoinTests {
  @Test("LiveKit v1: join is the first frame, complete, and the answer follows at once")
  func join() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("mic", .audio), world.track("cam", .video)]
    world.join(alice) { $0.name = "Alice" }
    guard case .join(let join) = alice.messages.first else {
      Issue.record("no join")
      return
    }
    #expect(join.room?.name == "room")
    #expect(join.room?.sid.hasPrefix("RM_") == true)
    #expect(join.participant?.sid.hasPrefix("PA_") == true)
    #expect(join.participant?.identity == "alice")
    #expect(join.participant?.name == "Alice")
    #expect(join.participant?.state == .joined)
    #expect(join.participant?.permission?.canPublish == true)
    #expect(join.pingInterval == 5)
    #expect(join.pingTimeout == 15)
    #expect(join.serverInfo?.protocol == 17)
    // Clients read what it can do from this, and make no remote procedure calls below 1.8.0.
    #expect(join.serverInfo?.version == "1.8.0")
    #expect(!join.subscriberPrimary)
    #expect(join.fastPublish)
    #expect(join.sifTrailer.isEmpty)
    #expect(
      join.enabledPublishCodecs.map(\.mime) == [
        "audio/opus", "video/VP8", "video/H264", "video/VP9", "video/AV1", "audio/red",
      ])
    #expect(alice.answers.count == 1)
    let published = alice.messages.compactMap { message -> LiveKit.TrackPublishedResponse? in
      if case .trackPublished(let value) = message { value } else { nil }
    }
    #expect(published.map(\.cid) == ["mic", "cam"])
    #expect(published.allSatisfy { $0.track?.encryption == .custom })
    #expect(published.first?.track?.sid.hasPrefix("TR_AM") == true)
    #expect(published.last?.track?.sid.hasPrefix("TR_VC") == true)
  }

  @Test(
    "LiveKit protocol §1.4: the answer bundles everything, is ice-lite and passive, with its candidate")
  func answer() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("mic", .audio), world.track("cam", .video)]
    world.join(alice)
    let answer = try #require(alice.answer)
    try answer.validate(as: .answer)
    #expect(answer.isICELite)
    #expect(answer.bundle == ["a0", "v0", "data", "mic", "cam"])
    #expect(answer.media.map(\.port) == [9, 9, 9, 9, 9])
    #expect(answer.media.prefix(2).map(\.direction) == [.inactive, .inactive])
    #expect(answer.media[3].direction == .recvonly)
    #expect(answer.media[4].direction == .recvonly)
    #expect(answer.transport?.setup == .passive)
    #expect(answer.media[0].candidates.count == 1)
    #expect(answer.media[0].isEndOfCandidates)
    #expect(answer.media.filter(\.isRTP).allSatisfy { $0.headerExtensionID(RTPExtensionIDs.midURI) == 4 })
    #expect(answer.media[1].headerExtensionID(RTPExtensionIDs.ridURI) == 10)
    #expect(answer.media[1].headerExtensionID(RTPExtensionIDs.repairedRIDURI) == 11)
    #expect(answer.media[4].codecs.first?.feedback == ["transport-cc", "ccm fir", "nack", "nack pli"])
    let trickles = alice.messages.compactMap { message -> LiveKit.TrickleRequest? in
      if case .trickle(let value) = message { value } else { nil }
    }
    #expect(trickles.count == 1)
    #expect(trickles.first?.final == true)
    let candidate = try LiveKit.CandidateInit(json: trickles.first?.candidateInit ?? "")
    #expect(candidate.sdpMid == "a0")
    #expect(candidate.sdpMLineIndex == 0)
  }

  @Test("Transport: ICE, DTLS and SRTP come up, and everyone learns that the participant is active")
  func transport() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    world.run(for: .milliseconds(100))
    #expect(alice.updates(of: "bob").last?.state == .active)
    #expect(bob.updates(of: "bob").last?.state == .active)
    let versions = alice.updates(of: "bob").map(\.version)
    #expect(versions == versions.sorted())
    #expect(Set(versions).count == versions.count)
    #expect(bob.join?.otherParticipants.first?.tracks.count == 2)
  }

  @Test("Fast set-up: tracks of the room are in the first answer, one msid each, with mid_to_track_id")
  func firstAnswer() throws {
    let world = try World()
    let (_, bob) = try call(world)
    let answer = try #require(bob.answer)
    let tracks = try #require(bob.join?.otherParticipants.first?.tracks)
    let publisher = try #require(bob.join?.otherParticipants.first?.sid)
    for (index, track) in tracks.enumerated() {
      let section = answer.media[index]
      #expect(section.direction == .sendonly)
      #expect(section.msids == [MediaStreamID(stream: "\(publisher)|\(track.sid)", track: track.sid)])
      #expect(bob.answers.first?.midToTrackId[section.mid ?? ""] == track.sid)
      #expect(section.sources.first?.cname != nil)
    }
    #expect(answer.media[1].sourceGroups.map(\.semantics) == ["FID"])
    #expect(answer.media[1].sources.count == 2)
    #expect(bob.requirements.isEmpty)
  }

  @Test("Update: a track that is published later asks for sections and is in the next answer")
  func laterTrack() throws {
    let world = try World()
    let alice = try world.client("alice")
    let bob = try world.client("bob")
    alice.audioSections = 0
    alice.videoSections = 0
    world.join(alice)
    world.join(bob)
    #expect(world.connect(alice) && world.connect(bob))
    // Bob has a free section of each kind and is only asked to offer; Carol must add one.
    let carol = try world.client("carol")
    carol.audioSections = 0
    carol.videoSections = 0
    world.join(carol)
    alice.tracks = [world.track("cam", .video)]
    world.signal(.addTrack(alice.addTrack(alice.tracks[0])), from: alice)
    world.signal(.offer(alice.offerMessage()), from: alice)
    #expect(bob.requirements == [LiveKit.MediaSectionsRequirement()])
    #expect(carol.requirements.map(\.numVideos) == [1])
    #expect(carol.requirements.map(\.numAudios) == [0])
    let sid = try #require(bob.updates(of: "alice").last?.tracks.first?.sid)
    #expect(bob.answers.last?.midToTrackId == ["v0": sid])
    #expect(carol.answers.last?.midToTrackId == ["v0": sid])
    #expect(alice.updates(of: "alice").last?.tracks.map(\.sid) == [sid])
    let subscribed = alice.messages.contains {
      if case .trackSubscribed(let message) = $0 { message.trackSid == sid } else { false }
    }
    #expect(subscribed)
  }

  @Test("JS: an offer that comes before its add_track is accepted, and the track is announced when it comes")
  func offerFirst() throws {
    let world = try World()
    let alice = try world.client("alice")
    let bob = try world.client("bob")
    world.join(bob)
    alice.tracks = [world.track("cam", .video)]
    world.join(alice, request: { $0.addTrackRequests = [] })
    #expect(alice.answer?.media.last?.direction == .recvonly)
    #expect(bob.updates(of: "alice").last?.tracks.isEmpty == true)
    world.signal(.addTrack(alice.addTrack(alice.tracks[0])), from: alice)
    #expect(bob.updates(of: "alice").last?.tracks.first?.mimeType == "video/VP8")
  }

  @Test("Unpublish: the section goes inactive, others learn, and their section is free for another track")
  func unpublish() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    alice.retiredCids = ["cam"]
    world.signal(.offer(alice.offerMessage()), from: alice)
    #expect(bob.updates(of: "alice").last?.tracks.map(\.name) == ["mic"])
    world.run(for: .milliseconds(500))
    #expect(bob.answer?.media[1].direction == .inactive)
    alice.tracks.append(world.track("screen", .video))
    world.signal(.addTrack(alice.addTrack(alice.tracks[2])), from: alice)
    world.signal(.offer(alice.offerMessage()), from: alice)
    let sid = try #require(bob.updates(of: "alice").last?.tracks.last?.sid)
    #expect(bob.answers.last?.midToTrackId["v0"] == sid)
    #expect(bob.answer?.media[1].msids.first?.track == sid)
  }

  @Test("Mute: TrackInfo.muted is told to everyone, without an acknowledgement")
  func mute() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let sid = try #require(bob.join?.otherParticipants.first?.tracks.first?.sid)
    world.signal(
      .mute(
        .with {
          $0.sid = sid
          $0.muted = true
        }), from: alice)
    #expect(bob.updates(of: "alice").last?.tracks.first?.muted == true)
    let count = bob.messages.count
    world.signal(
      .mute(
        .with {
          $0.sid = sid
          $0.muted = true
        }), from: alice)
    #expect(bob.messages.count == count)
  }

  @Test("Ping: both forms are answered, in milliseconds since 1970")
  func ping() throws {
    let world = try World()
    let alice = try world.client("alice")
    world.join(alice)
    world.signal(.ping(5), from: alice)
    world.signal(.pingReq(.with { $0.timestamp = 77 }), from: alice)
    guard case .pong(let time) = alice.messages[alice.messages.count - 2],
      case .pongResp(let response) = alice.messages[alice.messages.count - 1]
    else {
      Issue.record("no answer")
      return
    }
    #expect(time == 1_760_000_000_000)
    #expect(response.lastPingTimestamp == 77)
    #expect(response.timestamp == time)
  }

  @Test("Leave: others see DISCONNECTED with its reason, and an empty room is dropped 20 s later")
  func leave() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    world.signal(.leave(.with { $0.reason = .clientInitiated }), from: alice)
    #expect(alice.isClosed)
    #expect(bob.updates(of: "alice").last?.state == .disconnected)
    #expect(bob.updates(of: "alice").last?.disconnectReason == .clientInitiated)
    let room = bob.join?.room?.sid
    world.signal(.leave(LiveKit.LeaveRequest()), from: bob)
    world.run(for: .seconds(21))
    let carol = try world.client("carol")
    world.join(carol)
    #expect(carol.join?.room?.sid != room)
    #expect(carol.join?.otherParticipants.isEmpty == true)
  }

  @Test("Duplicate identity: the old session leaves with DUPLICATE_IDENTITY, others see only the new one")
  func duplicate() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let again = try world.client("alice")
    world.join(again)
    #expect(alice.leaves.map(\.reason) == [.duplicateIdentity])
    #expect(alice.leaves.map(\.action) == [.disconnect])
    #expect(alice.isClosed)
    #expect(!bob.updates(of: "alice").contains { $0.state == .disconnected })
    #expect(bob.updates(of: "alice").last?.sid == again.join?.participant?.sid)
    #expect(again.join?.otherParticipants.map(\.identity) == ["bob"])
    #expect(world.connect(again))
  }

  @Test(
    "1.5, duplicate identity: clients below protocol 12, which know sids alone, see the old session go",
    arguments: [11, 12])
  func replacedForOlder(protocol number: Int32) throws {
    let world = try World()
    let (alice, _) = try call(world)
    let old = try world.client("old")
    world.join(old, request: { $0.clientInfo?.protocol = number })
    let again = try world.client("alice")
    world.join(again)
    let states = old.updates(of: "alice").map { [$0.sid, $0.state == .disconnected ? "gone" : "there"] }
    let first = [alice, again].map { $0.join?.participant?.sid ?? "" }
    #expect(states == (number < 12 ? [[first[0], "gone"]] : []) + [[first[1], "there"]])
  }

  @Test("LiveKit protocol §4 (16): a resume of no session: STATE_MISMATCH, RECONNECT")
  func resumeOfNothing() throws {
    let world = try World()
    let alice = try world.client("alice")
    world.join(alice, request: { $0.reconnect = true })
    #expect(alice.messages.count == 1)
    #expect(alice.leaves.map(\.reason) == [.stateMismatch])
    #expect(alice.leaves.map(\.action) == [.reconnect])
    #expect(alice.isClosed)
  }

  @Test(
    "LiveKit protocol §4 (16): a resume of a session that was closed, of a room that goes on: the same at once"
  )
  func resumeOfClosed() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    _ = world.command(.remove(room: "room", identity: "alice"))
    #expect(alice.isClosed)
    let before = alice.messages.count
    world.resume(alice)
    #expect(alice.messages.count == before + 1)
    #expect(alice.leaves.last?.reason == .stateMismatch && alice.leaves.last?.action == .reconnect)
    #expect(alice.leaves.last?.canReconnect == true && alice.isClosed)
    #expect(!bob.isClosed)
  }

  @Test("Shutdown: everyone is told to leave with SERVER_SHUTDOWN")
  func shutDown() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    world.handle(.shutDown)
    #expect(alice.leaves.map(\.reason) == [.serverShutdown])
    #expect(bob.leaves.map(\.reason) == [.serverShutdown])
    #expect(alice.isClosed && bob.isClosed)
  }

  @Test("LiveKit protocol §4 (35): offers back to back are answered in order, each with its own id")
  func backToBack() throws {
    let world = try World()
    let alice = try world.client("alice")
    world.join(alice)
    for id in [UInt32(4), 5, 6] {
      var offer = alice.offerMessage()
      offer.id = id
      world.signal(.offer(offer), from: alice)
    }
    #expect(alice.answers.map(\.id) == [0, 4, 5, 6])
    let versions = try alice.answers.map { try SessionDescription(parsing: $0.sdp).origin.version }
    #expect(versions == [1, 2, 3, 4])
  }

  @Test("LiveKit protocol §4 (9): who joins later sees only what is still published")
  func lateJoiner() throws {
    let world = try World()
    let (alice, _) = try call(world)
    alice.retiredCids = ["cam"]
    world.signal(.offer(alice.offerMessage()), from: alice)
    let carol = try world.client("carol")
    world.join(carol)
    let tracks = carol.join?.otherParticipants.first { $0.identity == "alice" }?.tracks
    #expect(tracks?.map(\.name) == ["mic"])
  }
}
