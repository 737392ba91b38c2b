import PalbeLiveKit
import PalbeProtobuf
import Testing

@Suite("What a publisher tells later of its tracks (livekit protocol 1.5)")
struct TrackUpdateTests {
  @Test("update_audio_track and update_video_track change TrackInfo and are told to everyone")
  func updates() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let tracks = try #require(
      bob.updates(of: "alice").last?.tracks ?? bob.join?.otherParticipants.first?.tracks)
    let audio = try #require(tracks.first { $0.type == .audio }?.sid)
    let video = try #require(tracks.first { $0.type == .video }?.sid)
    world.signal(
      .updateAudioTrack(
        .with {
          $0.trackSid = audio
          $0.features = [.noDtx]
        }), from: alice)
    world.signal(
      .updateVideoTrack(
        .with {
          $0.trackSid = video
          $0.width = 320
          $0.height = 180
        }), from: alice)
    let told = try #require(bob.updates(of: "alice").last?.tracks)
    for track in tracks {
      let (before, after) = (track.version, told.first { $0.sid == track.sid }?.version)
      let later = try #require(after)
      #expect((later.unixMicro, later.ticks) > (before?.unixMicro ?? 0, before?.ticks ?? 0))
    }
    #expect(told.first { $0.sid == audio }?.audioFeatures == [.noDtx])
    #expect(told.first { $0.sid == video }?.width == 320)
    #expect(told.first { $0.sid == video }?.height == 180)
  }

  @Test("request_response: what is told of a track that is not there, or not of that kind, is NOT_FOUND")
  func unknown() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let tracks = try #require(bob.join?.otherParticipants.first?.tracks)
    let audio = try #require(tracks.first { $0.type == .audio }?.sid)
    for message: LiveKit.SignalRequest.Message in [
      .mute(.with { $0.sid = "TR_gone" }), .updateAudioTrack(.with { $0.trackSid = "TR_gone" }),
      .updateVideoTrack(.with { $0.trackSid = audio }),
    ] {
      world.signal(message, from: alice)
      // Nobody speaks for another.
      world.signal(.mute(.with { $0.sid = audio }), from: bob)
    }
    #expect(alice.refusals.map(\.reason) == [.notFound, .notFound, .notFound])
    #expect(alice.refusals.map { $0.request?.mute == nil } == [false, true, true])
    #expect(bob.refusals.map(\.reason) == [.notFound, .notFound, .notFound])
    #expect(alice.updates(of: "alice").last?.tracks.contains(where: \.muted) == false)
  }
}
