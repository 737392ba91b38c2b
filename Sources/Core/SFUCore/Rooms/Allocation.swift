import PalbeCongestion
import PalbeLiveKit
import PalbeProtobuf
import PalbeRTP
import PalbeUnits

extension Participant {
  private static let allocationInterval = TimeDelta.milliseconds(500)
  /// Between two reports of the client's, the layers are looked at again after this.
  private static let reportSpacing = TimeDelta.milliseconds(100)

  /// A report on the downlink came.
  func receive(_ feedback: TransportFeedback, at now: Instant) {
    link.receive(feedback, at: now)
    allocateSoon(at: now)
  }

  func receive(_ estimate: ReceiverEstimate, at now: Instant) {
    link.receive(estimate, at: now)
    allocateSoon(at: now)
  }

  private func allocateSoon(at now: Instant) {
    if now >= link.nextAllocationAt - Self.allocationInterval + Self.reportSpacing { allocate(at: now) }
    if let deadline = link.nextDeadline { wake(at: deadline) }
  }

  /// What the link's timers make due.
  func controlLink(at now: Instant) {
    link.handleTimeout(at: now)
    if now >= link.nextAllocationAt { allocate(at: now) }
    if let deadline = link.nextDeadline { wake(at: deadline) }
    if downlink.hasVideo { wake(at: link.nextAllocationAt) }
  }

  /// Shares the link out among the videos that the client wants: which layer of each fits, and which is paused.
  func allocate(at now: Instant) {
    link.nextAllocationAt = now + Self.allocationInterval
    guard downlink.hasVideo else { return }
    for downTrack in downlink.downTracks where downTrack.track.kind == .video {
      downTrack.updateWantedPart(at: now)
    }
    guard let budget = budget(at: now) else { return lift(at: now) }
    var sound: Int64 = 0
    for downTrack in downlink.downTracks {
      let track = downTrack.track
      guard track.kind == .video else {
        sound += track.soundRate(at: now)
        continue
      }
      guard downTrack.isWanted else {
        link.allocator.remove(downTrack.id)
        continue
      }
      link.allocator.update(
        LayerAllocator.Track(
          rates: track.layerRates(at: now),
          maximum: VideoLayer(
            spatial: UInt8(clamping: downTrack.wantedSize), temporal: downTrack.wantedPart),
          priority: downTrack.priority, isSpeaking: room.speakerSid == track.publisher.sid,
          canPause: allowsPause), for: downTrack.id, at: now)
    }
    link.allocator.allocate(DataRate(bitsPerSecond: max(0, budget.bitsPerSecond - sound)), at: now)
    link.setDesired(DataRate(bitsPerSecond: link.allocator.desired.bitsPerSecond + sound), at: now)
    var states: [LiveKit.StreamStateInfo] = []
    for downTrack in downlink.downTracks where downTrack.track.kind == .video {
      // What is not measured yet begins small where it can.
      let isPaused = downTrack.isWanted && link.allocator.isPaused(downTrack.id)
      let unknown = VideoLayer(
        spatial: downTrack.track.hasSizes ? 0 : .max, temporal: downTrack.wantedPart)
      let fitting = isPaused ? nil : link.allocator.layer(of: downTrack.id) ?? unknown
      if let state = fit(downTrack, fitting, at: now) { states.append(state) }
    }
    tell(states)
  }

  /// What may be sent; nil where nobody says.
  private func budget(at now: Instant) -> DataRate? {
    guard let simulatedBandwidth else { return link.budget(at: now) }
    return min(link.budget(at: now) ?? simulatedBandwidth, simulatedBandwidth)
  }

  /// Nothing limits the link.
  private func lift(at now: Instant) {
    var states: [LiveKit.StreamStateInfo] = []
    for downTrack in downlink.downTracks where downTrack.track.kind == .video {
      let highest = VideoLayer(
        spatial: VideoLayer.highest.spatial, temporal: downTrack.wantedPart)
      if let state = fit(downTrack, highest, at: now) { states.append(state) }
    }
    tell(states)
  }

  /// What the client is to be told of it.
  private func fit(
    _ downTrack: DownTrack, _ layer: VideoLayer?, at now: Instant
  ) -> LiveKit.StreamStateInfo? {
    let before = downTrack.fitting
    guard before != layer else { return nil }
    downTrack.fitting = layer
    downTrack.track.wantKeyFrame(for: downTrack, at: now)
    guard (before == nil) != (layer == nil) else { return nil }
    return .with {
      $0.participantSid = downTrack.track.publisher.sid
      $0.trackSid = downTrack.track.sid
      $0.state = layer == nil ? .paused : .active
    }
  }

  private func tell(_ states: [LiveKit.StreamStateInfo]) {
    guard !states.isEmpty else { return }
    send(.streamStateUpdate(.with { $0.streamStates = states }))
  }
}

extension PublishedTrack {
  /// What its layers take now.
  func layerRates(at now: Instant) -> LayerRates {
    var rates = LayerRates()
    for stream in streams where stream.isAlive(at: now) {
      stream.meter.update(at: now)
      for part in 0..<LayerRates.temporalCount {
        guard streams.count == 1 else {
          rates[stream.rank, part] = stream.meter.rate(part)
          continue
        }
        for size in 0..<LayerRates.spatialCount { rates[size, part] = stream.meter.rate(part, size: size) }
      }
    }
    return rates
  }

  /// The lowest part of the frames that has so many a second, in all of its streams.
  func part(for frameRate: UInt32, current: UInt8, at now: Instant) -> UInt8 {
    var part: UInt8?
    for stream in streams where stream.isAlive(at: now) {
      stream.meter.update(at: now)
      part = max(part ?? 0, stream.meter.part(for: frameRate, current: current))
    }
    return part ?? current
  }

  /// Bits per second of an audio track.
  func soundRate(at now: Instant) -> Int64 {
    var sum: Int64 = 0
    for stream in streams where stream.isAlive(at: now) {
      stream.meter.update(at: now)
      sum += stream.meter.rate(0).bitsPerSecond
    }
    return sum
  }
}

extension DownTrack {
  /// The largest size that the subscriber wants, by the numbers of `PublishedTrack.layerRates`.
  var wantedSize: Int {
    guard track.streams.count == 1, let layering = track.streams.first?.layering else { return wantedRank }
    return wantedSize(of: layering.sizeCount)
  }

  /// Looks at how many frames a second the parts have now.
  func updateWantedPart(at now: Instant) {
    wantedPart = wantedFrameRate == 0 ? .max : track.part(for: wantedFrameRate, current: wantedPart, at: now)
  }
}

extension Downlink {
  var hasVideo: Bool { downTracks.contains { $0.track.kind == .video } }

  /// Writes a packet for a probe, of a video that can be repeated.
  @_lifetime(buffer: copy buffer)
  func pad(
    _ byteCount: Int, using scratch: inout MediaPacket, into buffer: inout MutableSpan<UInt8>, at now: Instant
  ) -> Int? {
    for downTrack in downTracks where downTrack.track.kind == .video {
      if let count = downTrack.pad(byteCount, using: &scratch, into: &buffer, at: now) { return count }
    }
    return nil
  }
}
