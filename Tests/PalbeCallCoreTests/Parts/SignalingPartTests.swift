import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits
import Testing

@testable import PalbeCallCore

@Suite struct SignalingPartTests {
  private func info(
    _ identity: String, sid: String, version: UInt32 = 1, tracks: [LiveKit.TrackInfo] = []
  ) -> LiveKit.ParticipantInfo {
    .with {
      $0.identity = identity
      $0.sid = sid
      $0.version = version
      $0.state = .active
      $0.tracks = tracks
    }
  }

  private func track(_ sid: String, muted: Bool = false) -> LiveKit.TrackInfo {
    .with {
      $0.sid = sid
      $0.muted = muted
    }
  }

  @Test("LiveKit protocol §1.5: older versions are dropped, a new sid replaces the old session")
  func versions() {
    var roster = Roster(localIdentity: "me")
    #expect(roster.update(info("me", sid: "PA_me")).isEmpty)
    #expect(roster.update(info("bob", sid: "PA_1", version: 5)) == [.connected(identity: "bob")])
    #expect(roster.update(info("bob", sid: "PA_1", version: 4, tracks: [track("TR_1")])).isEmpty)
    #expect(roster.track("TR_1") == nil)
    #expect(
      roster.update(info("bob", sid: "PA_1", version: 6, tracks: [track("TR_1")]))
        == [.updated(identity: "bob", audioMuted: false, videoEnabled: false)])
    #expect(roster.track("TR_1")?.identity == "bob")
    #expect(
      roster.update(info("bob", sid: "PA_2"))
        == [.disconnected(identity: "bob"), .connected(identity: "bob")])
    #expect(roster.track("TR_1") == nil)
    // The end of the older session is no news.
    var gone = info("bob", sid: "PA_1")
    gone.state = .disconnected
    #expect(roster.update(gone).isEmpty)
    gone.sid = "PA_2"
    #expect(roster.update(gone) == [.disconnected(identity: "bob")])
    #expect(roster.members.isEmpty && roster.identity(sid: "PA_2") == nil)
  }

  @Test("A track's sid stays its first owner's")
  func stolenTrack() {
    var roster = Roster(localIdentity: "me")
    _ = roster.update(info("bob", sid: "PA_1", tracks: [track("TR_1")]))
    _ = roster.update(info("eve", sid: "PA_2", tracks: [track("TR_1"), track("TR_2")]))
    #expect(roster.track("TR_1")?.identity == "bob")
    #expect(roster.track("TR_2")?.identity == "eve")
    _ = roster.update(info("bob", sid: "PA_1", version: 2, tracks: [track("TR_1", muted: true)]))
    #expect(roster.track("TR_1")?.info.muted == true)
  }

  @Test(
    "LiveKit protocol §1.5: a ping of both forms every interval, and the link is gone after the time-out")
  func pings() throws {
    let start = Instant(nanoseconds: 9_000_000_000)
    var link = SignalLink(at: start)
    #expect(link.nextDeadline == start + .seconds(10))
    link.open(pingInterval: 5, pingTimeout: 15, at: start)
    #expect(link.handleTimeout(at: start + .seconds(4), unixMilliseconds: 1) == false)
    #expect(link.poll() == nil)
    #expect(link.handleTimeout(at: start + .seconds(5), unixMilliseconds: 777) == false)
    #expect(try LiveKit.SignalRequest(serialized: link.poll() ?? []).message == .ping(777))
    #expect(
      try LiveKit.SignalRequest(serialized: link.poll() ?? []).message
        == .pingReq(.with { $0.timestamp = 777 }))
    link.received(.with { $0.lastPingTimestamp = 777 }, unixMilliseconds: 800)
    #expect(link.handleTimeout(at: start + .seconds(10), unixMilliseconds: 6_000) == false)
    _ = link.poll()
    #expect(
      try LiveKit.SignalRequest(serialized: link.poll() ?? []).message
        == .pingReq(
          .with {
            $0.timestamp = 6_000
            $0.rtt = 23
          }))
    #expect(link.handleTimeout(at: start + .seconds(15), unixMilliseconds: 1) == true)
    link.close()
    #expect(link.nextDeadline == nil)
    // Zero and negative intervals are replaced.
    var other = SignalLink(at: start)
    other.open(pingInterval: 0, pingTimeout: -4, at: start)
    #expect(other.nextDeadline == start + .seconds(5))
  }

  @Test("A server that never joins us is given up after 10 s")
  func joinTimeout() {
    var link = SignalLink(at: .zero)
    #expect(link.handleTimeout(at: .zero + .milliseconds(9_999), unixMilliseconds: 0) == false)
    #expect(link.handleTimeout(at: .zero + .seconds(10), unixMilliseconds: 0) == true)
  }

  @Test("Speakers: changes add up, a level that is no number is none")
  func speakers() {
    var speakers = Speakers()
    func speaker(_ sid: String, _ level: Float, active: Bool = true) -> LiveKit.SpeakerInfo {
      .with {
        $0.sid = sid
        $0.level = level
        $0.active = active
      }
    }
    #expect(speakers.update([speaker("a", 0.1), speaker("b", 0.9), speaker("c", .nan)]) == ["b", "a"])
    #expect(speakers.update([speaker("b", 0.9, active: false), speaker("d", 0.05)]) == ["a", "d"])
  }
}
