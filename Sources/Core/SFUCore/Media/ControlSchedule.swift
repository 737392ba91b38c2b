import PalbeCongestion
import PalbeICE
import PalbeLiveKit
import PalbeRTP
import PalbeUnits

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
      context.events.append(.refreshToken(connection, grant))
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
    for transport in transports where !transport.isConnected {
      if case .failed = transport.handleTimeout(at: now) { return .transportFailed }
      if let deadline = transport.handshakeDeadline { wake(at: deadline) }
    }
    flushHandshake()
    guard !isConnected else { return nil }
    let connectDeadline = joinedAt + context.configuration.connectTimeout
    guard now < connectDeadline else { return .connectTimeout }
    wake(at: connectDeadline)
    return nil
  }

  /// Asks this publisher for packets that are missing and key frames that are wanted.
  private func askForMedia(at now: Instant) {
    var requests: [RTCPPacket] = []
    for stream in uplink.tracks.lazy.flatMap(\.streams) {
      let missing = stream.pollNACKs(at: now, roundTrip: roundTrip)
      if !missing.isEmpty {
        context.totals.nacksSent += UInt64(missing.count)
        requests.append(
          .nack(GenericNACK(sender: uplink.localSSRC, media: stream.ssrc, sequenceNumbers: missing)))
      }
      if let deadline = stream.nackDeadline { wake(at: deadline) }
      if stream.track.downTracks.isEmpty { stream.keyFrames.rest() }
      // A muted track has no frames to give; its request is sent when it is unmuted.
      guard !stream.track.info.muted else { continue }
      if stream.keyFrames.poll(at: now) {
        context.totals.pictureLossesSent += 1
        requests.append(.pictureLossIndication(sender: uplink.localSSRC, media: stream.ssrc))
      }
      if let deadline = stream.keyFrames.nextDeadline { wake(at: deadline) }
    }
    sendControl(requests, over: transport)
  }

  private func sendFeedback(at now: Instant) {
    guard uplink.ids.transportSequenceNumber != 0 else { return }
    let media = uplink.streams.keys.first ?? SSRC(0)
    while let compound = uplink.feedback.poll(at: now, sender: uplink.localSSRC, media: media) {
      sendControl(compound: compound, over: transport)
    }
    if let deadline = uplink.feedback.nextDeadline { wake(at: deadline) }
  }

  /// To and from this participant, by what it says of what we send; a guess before it says anything.
  var roundTrip: TimeDelta { measuredRoundTrip ?? .milliseconds(50) }

  /// Nil before it says anything.
  var measuredRoundTrip: TimeDelta? { downlink.downTracks.lazy.compactMap(\.statistics.roundTrip).first }

  /// A receiver report on everything it sends, and a sender report on everything it gets.
  private func sendReports(at now: Instant) {
    var blocks: [ReportBlock] = []
    for stream in uplink.streams.values {
      if let block = stream.report(at: now) { blocks.append(block) }
    }
    // A dictionary's order is another in each run.
    blocks.sort { $0.ssrc.rawValue < $1.ssrc.rawValue }
    for start in stride(from: 0, to: blocks.count, by: 31) {
      let report = ReceiverReport(
        ssrc: uplink.localSSRC, blocks: Array(blocks[start..<min(start + 31, blocks.count)]))
      sendControl([.receiverReport(report), description(of: [uplink.localSSRC], sid)], over: transport)
    }
    var compound: [RTCPPacket] = []
    var size = 0
    for downTrack in downlink.downTracks {
      guard let report = downTrack.report(at: now) else { continue }
      compound.append(.senderReport(report))
      compound.append(description(of: [downTrack.ssrc], downTrack.track.publisher.sid))
      size += 64
      if size > Self.compoundLimit {
        sendControl(compound, over: downTransport)
        compound = []
        size = 0
      }
    }
    sendControl(compound, over: downTransport)
  }

  private func description(of sources: [SSRC], _ name: String) -> RTCPPacket {
    .sourceDescription(sources.map { SourceDescription(ssrc: $0, canonicalName: name) })
  }

  /// Simulcast layers come and go with the publisher's bandwidth.
  private func chooseLayers(at now: Instant) {
    for downTrack in downlink.downTracks where downTrack.isReady {
      downTrack.track.wantKeyFrame(for: downTrack, at: now)
    }
  }
}
