import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeRTP
import PalbeUnits
import Testing

@testable import PalbeSFUCore

@Suite("Switching layers")
struct LayerSwitchTests {
  @Test(
    "RFC 3550 §6.4.1: through a switch the subscriber's timestamps name the same moments of the publisher's clock"
  )
  func lipSync() throws {
    let call = try LayeredCall(NetworkAcceptanceTests.rates, seed: 3)
    // All layers were sampled together, on clocks that began anywhere.
    let origin = NTPTime(rawValue: 3_900_000_000 << 32)
    func report() throws {
      let reports = call.source.layers.map { layer -> RTCPPacket in
        let elapsed = UInt64((call.world.now - call.start).nanoseconds)
        let ntpTime = NTPTime(rawValue: origin.rawValue &+ ((elapsed << 20) / 1_000_000_000) << 12)
        return .senderReport(
          SenderReport(
            ssrc: layer.ssrc, ntpTime: ntpTime, rtpTimestamp: RTPTimestamp(layer.timestamp),
            packetCount: 1, octetCount: 1))
      }
      for packet in reports { call.world.send([try call.alice.controlPacket([packet])], from: call.alice) }
    }
    for step in 1...20 {
      try call.run(until: .milliseconds(500 * step), over: .constant)
      try report()
      if step == 12 {
        let sid = try #require(call.bob.join?.otherParticipants.first?.tracks.first?.sid)
        call.world.signal(
          .trackSetting(
            .with {
              $0.trackSids = [sid]
              $0.quality = .low
            }), from: call.bob)
      }
    }
    let layers = call.viewer.layers.changes.map(\.value)
    #expect(layers.last == 0 && layers.contains(2), "\(layers)")
    let reports = call.bob.control.compactMap { packet -> SenderReport? in
      if case .senderReport(let report) = packet { report } else { nil }
    }
    // Where the subscriber's clock stood at the origin, by each report. The first layer's clock is what it is.
    let offsets = reports.map { report -> UInt32 in
      let elapsed = report.ntpTime.rawValue &- origin.rawValue
      return report.rtpTimestamp.rawValue &- UInt32(truncatingIfNeeded: ((elapsed >> 12) * 90_000) >> 20)
    }
    let first = try #require(offsets.first)
    let worst = offsets.map { Int32(bitPattern: $0 &- first).magnitude }.max() ?? 0
    #expect(offsets.count > 10)
    #expect(worst <= 90 * 34, "\(worst) ticks off: more than a frame")
    for (earlier, later) in zip(call.viewer.timestamps, call.viewer.timestamps.dropFirst()) {
      #expect(later.timestamp.distance(from: earlier.timestamp) > 0)
    }
  }

  @Test(
    "RFC 7741: on a tight link upper temporal layers are left out, without a gap in any counter, and come back",
    arguments: [0, 0.03])
  func temporalLayers(uplinkLoss: Double) throws {
    let call = try LayeredCall([.kilobitsPerSecond(150)], seed: 5, temporalLayers: 3)
    call.viewer.keepsFrames = true
    func line(_ rate: Int) -> SimulatedLink {
      SimulatedLink("line", Link(delay: .milliseconds(25), bandwidth: .kilobitsPerSecond(rate)))
    }
    call.world.network.setLink(
      Link(delay: .milliseconds(10), loss: uplinkLoss), from: call.alice.address, to: World.server)
    try call.run(until: .seconds(8), over: line(1_000))
    #expect(call.viewer.frames.contains { $0.descriptor.temporalLayer?.index == 2 })
    try call.run(until: .seconds(16), over: line(110))
    let tight = call.viewer.frames.count
    try call.run(until: .seconds(24), over: line(110))
    let frames = call.viewer.frames[tight...]
    let low = frames.count { ($0.descriptor.temporalLayer?.index ?? 0) < 2 }
    #expect(
      low * 10 > frames.count * 9 && frames.count > (uplinkLoss == 0 ? 45 : 15), "\(low) of \(frames.count)")
    if uplinkLoss == 0 {
      for (earlier, later) in zip(frames, frames.dropFirst()) where !later.isKeyFrame {
        let step = (later.descriptor.pictureID ?? 0) &- (earlier.descriptor.pictureID ?? 0)
        #expect(step & 0x7fff == 1)
      }
    }
    let freeze = call.viewer.pictures.longestFreeze(from: call.start + .seconds(1), to: call.world.now)
    #expect(freeze < .seconds(uplinkLoss == 0 ? 2 : 3), "\(freeze.inMilliseconds) ms")
    try call.run(until: .seconds(60), over: line(1_000))
    #expect(call.viewer.frames.suffix(60).contains { $0.descriptor.temporalLayer?.index == 2 })
  }

  @Test(
    "livekit-protocol.md §1.5, track_setting: the smallest layer that fills what is shown, but for a tenth; else the best",
    arguments: [
      (320, 180, 0), (355, 200, 0), (356, 200, 1), (640, 360, 1), (700, 390, 1), (712, 400, 2),
      (4_000, 3_000, .max),
    ] as [(UInt32, UInt32, Int)])
  func shownSize(width: UInt32, height: UInt32, rank: Int) throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    var request = alice.addTrack(alice.tracks[0])
    request.layers = (0..<3).map { index in
      .with {
        $0.quality = LiveKit.VideoQuality(rawValue: Int32(index))
        $0.width = 320 << UInt32(index)
        $0.height = 180 << UInt32(index)
      }
    }
    world.join(alice, request: { $0.addTrackRequests = [request] })
    let bob = try world.client("bob")
    world.join(bob)
    let sid = try #require(bob.join?.otherParticipants.first?.tracks.first?.sid)
    world.signal(
      .trackSetting(
        .with {
          $0.trackSids = [sid]
          $0.width = width
          $0.height = height
        }), from: bob)
    let downlink = try #require(world.worker.participants.first { $0.identity == "bob" }?.downlink)
    #expect(downlink.downTracks.map(\.wantedRank) == [rank])
  }

  @Test(
    "livekit-protocol.md §1.5, track_setting: of a video with temporal layers a subscriber gets the frames a second that it asks for",
    arguments: [Viewer.Feedback.transportWide, .none])
  func frameRate(feedback: Viewer.Feedback) throws {
    let call = try LayeredCall([.kilobitsPerSecond(150)], seed: 6, feedback: feedback, temporalLayers: 3)
    call.viewer.keepsFrames = true
    let sid = try #require(call.bob.join?.otherParticipants.first?.tracks.first?.sid)
    try call.run(until: .seconds(6), over: .constant)
    var seconds = 6
    for (wanted, frames) in [(15, 15), (7, 7.5), (20, 30), (0, 30)] as [(UInt32, Double)] {
      call.world.signal(
        .trackSetting(
          .with {
            $0.trackSids = [sid]
            $0.quality = .high
            $0.fps = wanted
          }), from: call.bob)
      try call.run(until: .seconds(seconds + 2), over: .constant)
      let before = call.viewer.frames.count
      try call.run(until: .seconds(seconds + 6), over: .constant)
      seconds += 6
      let rate = Double(call.viewer.frames.count - before) / 4
      #expect(abs(rate - frames) < 2, "\(rate) for \(wanted)")
    }
    let ids = call.viewer.frames.map { $0.descriptor.pictureID ?? 0 }
    #expect(zip(ids, ids.dropFirst()).allSatisfy { ($1 &- $0) & 0x7fff == 1 })
  }

  @Test(
    "livekit-protocol.md §4 items 6, 7: join, subscribing again and a switch each ask the publisher, whose requests may get lost"
  )
  func requests() throws {
    let call = try LayeredCall(NetworkAcceptanceTests.rates, seed: 4)
    // A publisher far away that loses what it is asked; it sends no key frame by itself.
    call.world.network.setLink(
      Link(delay: .milliseconds(150), loss: 0.5), from: World.server, to: call.alice.address)
    try call.run(until: .seconds(3), over: .constant)
    #expect(!call.source.layers.allSatisfy { $0.keyFrames == 0 })
    #expect(call.viewer.pictures.longestFreeze(from: call.start, to: call.world.now) < .seconds(2))
    func asked() -> UInt64 {
      call.world.worker.participants.first { $0.identity == "alice" }?.uplink.tracks.flatMap(\.streams)
        .map(\.keyFrames.count).reduce(0, +) ?? 0
    }
    let sid = try #require(call.bob.join?.otherParticipants.first?.tracks.first?.sid)
    var before = asked()
    call.world.signal(
      .trackSetting(
        .with {
          $0.trackSids = [sid]
          $0.quality = .low
        }), from: call.bob)
    try call.run(until: .seconds(6), over: .constant)
    #expect(asked() > before)
    #expect(call.viewer.layers.changes.last?.value == 0)
    before = asked()
    for subscribe in [false, true] {
      call.world.signal(
        .subscription(
          .with {
            $0.trackSids = [sid]
            $0.subscribe = subscribe
          }), from: call.bob)
    }
    try call.run(until: .seconds(8), over: .constant)
    #expect(asked() > before)
  }
}
