import PalbeCongestion
import PalbeICE
import PalbeLiveKit
import PalbeRTP
import PalbeUnits
import PalbeWire

extension Participant {
  /// Time between two reports of one kind (RFC 3550 §6.2 with the reduced minimum).
  private static let reportInterval = TimeDelta.seconds(1)
  /// Bytes of a compound at most, without protection.
  private static let compoundLimit = 1_100

  /// A transport came up: reports begin, and pictures are asked for.
  func startMedia(over transport: PeerTransport, at now: Instant) {
    nextReportAt = now + Self.reportInterval
    wake(at: nextReportAt)
    nextQualityAt = now + .seconds(5)
    if transport === downTransport {
      allocate(at: now)
      for downTrack in downlink.downTracks { downTrack.track.wantKeyFrame(for: downTrack, at: now) }
    }
    wake(at: now)
  }

  /// Everything that time makes due. Says so when the participant must go or has lost a part of its session.
  func handleTimeout(at now: Instant) -> Expiry? {
    forgetDeadline()
    if let expiry = checkLiveness(at: now) { return expiry }
    renewToken(at: now)
    if let departure = makeOffer(at: now) { return .departure(departure) }
    askForRest(at: now)
    if let departure = handleHandshakes(at: now) { return .departure(departure) }
    guard isConnected || transport.isConnected else { return nil }
    askForMedia(at: now)
    sendFeedback(at: now)
    endSpeechWindow(at: now)
    for track in uplink.tracks { track.updateDynacast(at: now) }
    updateQuality(at: now)
    controlLink(at: now)
    if now >= nextReportAt {
      nextReportAt = now + Self.reportInterval
      sendReports(at: now)
      chooseLayers(at: now)
    }
    wake(at: nextReportAt)
    return nil
  }

  private func renewToken(at now: Instant) {
    if now >= nextTokenAt, let connection {
      nextTokenAt = now + context.configuration.tokenInterval
      context.events.append(.refreshToken(connection, presentGrant))
    }
    wake(at: nextTokenAt)
  }

  /// True while the client's checks arrive, which they do every few seconds.
  func isHeard(at now: Instant) -> Bool {
    guard let last = primaryTransport.ice.lastAuthenticatedCheck else { return false }
    return now - last < context.configuration.silenceTimeout
  }

  private func checkLiveness(at now: Instant) -> Expiry? {
    let ice = primaryTransport.ice
    let isExpired = ice.isExpired(at: now)
    if let resumeDeadline {
      // Nobody to tell: who neither signals nor checks is gone, unless it was given time because of that.
      let isGone = now >= resumeDeadline || !isExpired && !isHeard(at: now)
      guard !isGone else { return .departure(isExpired ? .consentExpired : .connectionClosed) }
      wake(at: resumeDeadline)
      if !isExpired, let last = ice.lastAuthenticatedCheck {
        wake(at: last + context.configuration.silenceTimeout)
      }
      return nil
    }
    let pingDeadline = lastSignalAt + context.configuration.pingTimeout
    if now >= pingDeadline {
      return isConnected && isHeard(at: now) ? .signaling : .departure(.pingTimeout)
    }
    wake(at: pingDeadline)
    if !isExpired {
      if let deadline = ice.consentDeadline { wake(at: deadline) }
    } else if now < restartDeadline {
      wake(at: restartDeadline)
    } else {
      return isConnected ? .consent : .departure(.consentExpired)
    }
    return nil
  }

  /// Transports that are not up yet.
  private func handleHandshakes(at now: Instant) -> Departure? {
    guard handleHandshake(over: transport, at: now),
      downTransport === transport || handleHandshake(over: downTransport, at: now)
    else { return .transportFailed }
    flushHandshake()
    guard !isConnected else { return nil }
    let connectDeadline = joinedAt + context.configuration.connectTimeout
    guard now < connectDeadline else { return .connectTimeout }
    wake(at: connectDeadline)
    return nil
  }

  /// False when it failed.
  private func handleHandshake(over transport: PeerTransport, at now: Instant) -> Bool {
    guard !transport.isConnected else { return true }
    if case .failed = transport.handleTimeout(at: now) { return false }
    if let deadline = transport.handshakeDeadline { wake(at: deadline) }
    return true
  }

  /// Asks this publisher for packets that are missing and key frames that are wanted.
  private func askForMedia(at now: Instant) {
    sendControl(over: transport) { writer in
      for track in uplink.tracks {
        for stream in track.streams { askForMedia(of: stream, into: &writer, at: now) }
      }
    }
  }

  private func askForMedia(of stream: IncomingStream, into writer: inout ByteWriter, at now: Instant) {
    context.missing.removeAll(keepingCapacity: true)
    stream.pollNACKs(at: now, roundTrip: roundTrip, into: &context.missing)
    if !context.missing.isEmpty {
      context.totals.nacksSent += UInt64(context.missing.count)
      RTCPPacket.writeNACK(
        sender: uplink.localSSRC, media: stream.ssrc, context.missing, into: &writer)
    }
    if let deadline = stream.nackDeadline { wake(at: deadline) }
    if stream.track.downTracks.isEmpty { stream.keyFrames.rest() }
    // A muted track has no frames to give; its request is sent when it is unmuted.
    guard !stream.track.info.muted else { return }
    if stream.keyFrames.poll(at: now) {
      context.totals.pictureLossesSent += 1
      RTCPPacket.pictureLossIndication(sender: uplink.localSSRC, media: stream.ssrc).write(into: &writer)
    }
    if let deadline = stream.keyFrames.nextDeadline { wake(at: deadline) }
  }

  private func sendFeedback(at now: Instant) {
    guard uplink.ids.transportSequenceNumber != 0 else { return }
    let media = uplink.streams.keys.first ?? SSRC(0)
    var isDue = true
    while isDue {
      sendControl(over: transport) { writer in
        isDue = uplink.feedback.poll(
          at: now, sender: uplink.localSSRC, media: media, using: &context.arrivals, into: &writer)
      }
    }
    if let deadline = uplink.feedback.nextDeadline { wake(at: deadline) }
  }

  /// To and from this participant, by what it says of what we send; a guess before it says anything.
  var roundTrip: TimeDelta { measuredRoundTrip ?? .milliseconds(50) }

  /// Nil before it says anything.
  var measuredRoundTrip: TimeDelta? { downlink.downTracks.lazy.compactMap(\.statistics.roundTrip).first }

  /// A receiver report on everything it sends, and a sender report on everything it gets.
  private func sendReports(at now: Instant) {
    context.reportBlocks.removeAll(keepingCapacity: true)
    for stream in uplink.streams.values {
      if let block = stream.report(at: now) { context.reportBlocks.append(block) }
    }
    // A dictionary's order is another in each run.
    context.reportBlocks.sort { $0.ssrc.rawValue < $1.ssrc.rawValue }
    for start in stride(from: 0, to: context.reportBlocks.count, by: 31) {
      sendControl(over: transport) { writer in
        RTCPPacket.writeReceiverReport(
          ssrc: uplink.localSSRC, context.reportBlocks[start...].prefix(31), into: &writer)
        RTCPPacket.write(SourceDescription(ssrc: uplink.localSSRC, canonicalName: sid), into: &writer)
      }
    }
    var next = 0
    while next < downlink.downTracks.count {
      sendControl(over: downTransport) { writer in
        while next < downlink.downTracks.count, writer.bytes.count <= Self.compoundLimit {
          let downTrack = downlink.downTracks[next]
          next += 1
          guard let report = downTrack.report(at: now) else { continue }
          RTCPPacket.senderReport(report).write(into: &writer)
          RTCPPacket.write(
            SourceDescription(ssrc: downTrack.ssrc, canonicalName: downTrack.track.publisher.sid),
            into: &writer)
        }
      }
    }
  }

  /// Simulcast layers come and go with the publisher's bandwidth.
  private func chooseLayers(at now: Instant) {
    for downTrack in downlink.downTracks where downTrack.isReady {
      downTrack.track.wantKeyFrame(for: downTrack, at: now)
    }
  }
}
