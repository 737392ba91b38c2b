import PalbeCongestion
import PalbeFrameEncryption
import PalbeRTP
public import PalbeUnits
import PalbeWire

/// What arrives on the UDP socket and over TCP.
extension CallSession {
  /// One datagram of `count` bytes, opened in place. What is not the server's is passed over.
  @_lifetime(datagram: copy datagram)
  public mutating func receive(
    _ datagram: inout MutableSpan<UInt8>, count: Int, from source: SocketAddress, at now: Instant
  ) {
    guard !isEnded, count > 0, count <= datagram.count else { return }
    switch PacketKind(datagram.span.extracting(0..<count)) {
    case .stun:
      transport.handleSTUN(datagram.span.extracting(0..<count), from: source, at: now)
      followTransport(at: now)
    case .dtls:
      transport.handleDTLS(datagram.span.extracting(0..<count), at: now)
      followTransport(at: now)
    case .rtp: receiveRTP(&datagram, count: count, at: now)
    case .rtcp: receiveRTCP(&datagram, count: count, at: now)
    case .turnChannel, .unknown: break
    }
  }

  /// The TCP connection to `remote` has ended, or could not be made.
  public mutating func disconnected(from remote: SocketAddress, at now: Instant) {
    guard !isEnded else { return }
    transport.disconnected(from: remote, at: now)
    followTransport(at: now)
  }

  /// The next decrypted video frame, in decoding order within its track.
  public mutating func pollVideoFrame(at now: Instant) -> ReceivedVideoFrame? {
    videoFrames.isEmpty ? nil : videoFrames.removeFirst()
  }

  /// What to play next of a remote audio track. Call it whenever less than 20 ms is left to play: a packet
  /// usually holds 20 ms, and the decoder tells when it holds more or less.
  public mutating func pullAudio(_ track: RemoteTrackID, at now: Instant) -> AudioPull {
    guard let track = self.track(track), track.kind == .audio else { return .idle }
    return track.audio.pull(at: now)
  }

  private static let extensionIDs: RTPExtensionIDs = {
    var ids = RTPExtensionIDs()
    ids.transportSequenceNumber = OfferBuilder.transportSequenceID
    ids.mid = OfferBuilder.midID
    return ids
  }()

  @_lifetime(datagram: copy datagram)
  private mutating func receiveRTP(_ datagram: inout MutableSpan<UInt8>, count: Int, at now: Instant) {
    guard var size = transport.open(&datagram, count: count, isControl: false),
      var header = try? RTPHeader.parse(datagram.span.extracting(0..<size))
    else { return }
    let values = Self.extensionIDs.read(header, in: datagram.span.extracting(0..<size))
    if let number = values.transportSequenceNumber { feedback.record(transportSequence: number, at: now) }
    guard let route = route(header, mid: values.mid) else { return }
    let track = route.track
    if route.isRepair {
      guard let ssrc = track.ssrc, header.payloadType == track.parameters.repairPayloadType,
        let unwrapped = try? RTX.unwrap(
          &datagram, count: size, payloadType: track.parameters.payloadType, ssrc: ssrc),
        let original = try? RTPHeader.parse(datagram.span.extracting(0..<unwrapped))
      else { return }
      size = unwrapped
      header = original
    }
    let payload = header.payloadRange(packetByteCount: size)
    guard header.payloadType == track.parameters.payloadType || payload.isEmpty,
      let sequence = track.stream?.received(
        header, payloadByteCount: payload.count, isRepair: route.isRepair, at: now)
    else { return }
    if !track.isAnnounced, !payload.isEmpty {
      track.isAnnounced = true
      report(
        .trackSubscribed(track.id, identity: track.identity, kind: track.kind, isEncrypted: track.isEncrypted)
      )
    }
    switch track.kind {
    case .audio:
      guard !payload.isEmpty else { return }
      receiveAudio(track, &datagram, payload, header.timestamp, sequence, at: now)
    case .video:
      track.video.insert(datagram.span.extracting(payload), header: header, sequence: sequence, at: now)
      takeVideoFrames(track, at: now)
    }
  }

  /// A packet is a frame: it is opened at once, in whatever order it comes.
  @_lifetime(datagram: copy datagram)
  private mutating func receiveAudio(
    _ track: RemoteTrack, _ datagram: inout MutableSpan<UInt8>, _ payload: Range<Int>,
    _ timestamp: RTPTimestamp, _ sequence: ExtendedSequenceNumber, at now: Instant
  ) {
    switch track.protection {
    case .plain: insertAudio(track, sequence, timestamp, [UInt8](datagram.span.extracting(payload)), at: now)
    case .refused: fail(track)
    case .sealed(let receiver):
      let tag = waiting.tag()
      switch protection.open(receiver, in: &datagram, frame: payload, tag: tag, at: now) {
      case .opened(let range):
        insertAudio(track, sequence, timestamp, [UInt8](datagram.span.extracting(range)), at: now)
      case .waiting:
        waiting.add(
          .init(tag: tag, track: track.id, serial: sequence.rawValue, timestamp: timestamp, arrival: now))
      case .failed: fail(track)
      }
    }
  }

  private func insertAudio(
    _ track: RemoteTrack, _ sequence: ExtendedSequenceNumber, _ timestamp: RTPTimestamp, _ packet: [UInt8],
    at now: Instant
  ) {
    track.openedFrames += 1
    guard !packet.isEmpty else { return }
    _ = track.audio.insert(sequence, timestamp: timestamp, payload: packet, at: now)
  }

  /// Opens the frames that are whole now.
  mutating func takeVideoFrames(_ track: RemoteTrack, at now: Instant) {
    while let (frame, serial) = track.video.nextFrame(at: now) {
      switch track.protection {
      case .plain:
        giveOut(frame.bytes, track, serial, frame.timestamp, arrival: frame.completedAt)
      case .refused: fail(track)
      case .sealed(let receiver):
        var bytes = frame.bytes
        let tag = waiting.tag()
        var buffer = bytes.mutableSpan
        switch protection.open(receiver, in: &buffer, frame: 0..<buffer.count, tag: tag, at: now) {
        case .opened(let range):
          giveOut(Array(bytes[range]), track, serial, frame.timestamp, arrival: frame.completedAt)
        case .waiting:
          waiting.add(
            .init(tag: tag, track: track.id, serial: serial, timestamp: frame.timestamp, arrival: now))
        case .failed:
          // No key frame is asked for: it could not be opened either. What can be opened later asks.
          fail(track)
          track.video.chain.breakOff()
        }
      }
    }
  }

  private mutating func giveOut(
    _ frame: [UInt8], _ track: RemoteTrack, _ serial: UInt64, _ timestamp: RTPTimestamp, arrival: Instant
  ) {
    track.openedFrames += 1
    guard let first = frame.first else { return }
    let isKeyFrame = first & 1 == 0
    switch track.video.chain.judge(serial, isKeyFrame: isKeyFrame) {
    case .stale: break
    case .orphan: track.video.asker.want()
    case .decodable:
      guard videoFrames.count < Self.videoFrameLimit else {
        // Nobody takes them: what comes next needs a key frame.
        videoFrames.removeAll()
        for track in tracks where track.kind == .video { track.video.giveUp() }
        return
      }
      videoFrames.append(
        ReceivedVideoFrame(
          track: track.id, bytes: frame, timestamp: timestamp, isKeyFrame: isKeyFrame, arrival: arrival))
    }
  }

  /// Frames whose key has come, before any later one.
  mutating func takeReleased(at now: Instant) {
    while let frame = protection.pollReleased(at: now) {
      guard let mark = waiting.take(frame.tag), let track = track(mark.track) else { continue }
      switch track.kind {
      case .audio:
        // As it arrived: that its key was late is no jitter.
        insertAudio(track, ExtendedSequenceNumber(mark.serial), mark.timestamp, frame.bytes, at: mark.arrival)
      case .video: giveOut(frame.bytes, track, mark.serial, mark.timestamp, arrival: mark.arrival)
      }
    }
  }

  /// Frames whose key did not come in time.
  mutating func expireWaiting(at now: Instant) {
    protection.handleTimeout(at: now)
    for mark in waiting.expire(at: now) {
      guard let track = track(mark.track) else { continue }
      track.framesWithoutKey += 1
      fail(track)
    }
  }

  private func fail(_ track: RemoteTrack) {
    track.failedFrames += 1
    track.failures.add()
  }
}
