import PalbeCongestion
import PalbeRTP
import PalbeUnits
import PalbeWire

/// RTCP: reports, repairs and key frames.
extension CallSession {
  static let reportInterval = TimeDelta.seconds(1)
  /// Until the first report block tells.
  static let assumedRoundTrip = TimeDelta.milliseconds(50)
  /// Report blocks in one packet (RFC 3550 §6.4.1).
  private static let blockLimit = 31

  var controlSSRC: SSRC { senders.first?.ssrc ?? listenerSSRC }

  mutating func send(control packet: [UInt8]) {
    if control.count < Self.controlLimit { control.append(packet) }
  }

  @_lifetime(datagram: copy datagram)
  mutating func receiveRTCP(_ datagram: inout MutableSpan<UInt8>, count: Int, at now: Instant) {
    guard let size = transport.open(&datagram, count: count, isControl: true) else { return }
    var reader = RTCPReader(datagram.span.extracting(0..<size))
    while true {
      do {
        guard let packet = try reader.next() else { break }
        handle(packet, at: now)
      } catch {}  // the reader goes on behind a malformed packet, or is at its end
    }
    passKeyFrameRequests(at: now)
  }

  private mutating func handle(_ packet: RTCPPacket, at now: Instant) {
    switch packet {
    case .senderReport(let report):
      if let route = routes[report.ssrc], !route.isRepair {
        route.track.stream?.received(report, at: now)
      }
      handle(report.blocks, at: now)
    case .receiverReport(let report): handle(report.blocks, at: now)
    case .nack(let nack): repair(nack, at: now)
    case .pictureLossIndication(_, let media):
      if let camera = sender(.camera), camera.ssrc == media { camera.throttle.request() }
    case .fullIntraRequest(let request):
      guard let camera = sender(.camera) else { return }
      if request.entries.contains(where: { $0.ssrc == camera.ssrc }) { camera.throttle.request() }
    case .sourceDescription, .goodbye, .transportFeedback, .receiverEstimate, .unknown: break
    }
  }

  private func handle(_ blocks: [ReportBlock], at now: Instant) {
    let time = NTPTime(unixNanoseconds: unixNanoseconds(at: now))
    for block in blocks {
      for sender in senders where sender.ssrc == block.ssrc {
        sender.statistics.received(block, ntpTime: time)
      }
    }
  }

  /// The same protected bytes again, and not more often than a repair can have arrived.
  private mutating func repair(_ nack: GenericNACK, at now: Instant) {
    guard let sender = senders.first(where: { $0.ssrc == nack.media }) else { return }
    let interval = max(TimeDelta.milliseconds(10), (roundTrip ?? Self.assumedRoundTrip) / 2)
    for number in nack.sequenceNumbers
    where sender.sent.claimRepair(number, at: now, minimumInterval: interval) {
      queue.push(.init(track: sender.track, sequenceNumber: number))
      counts.retransmittedPackets += 1
    }
  }

  mutating func passKeyFrameRequests(at now: Instant) {
    for sender in senders where sender.track == .camera {
      if sender.throttle.poll(at: now) { report(.keyFrameRequested(.camera)) }
    }
  }

  // MARK: What we say

  /// Missing packets, key frames, and frames that cannot be opened.
  mutating func checkTracks(at now: Instant) {
    let roundTrip = roundTrip ?? Self.assumedRoundTrip
    for track in tracks {
      if let due = track.video.repairDeadline, due <= now { takeVideoFrames(track, at: now) }
      if let failures = track.failures.poll(at: now) {
        report(.decryptionFailing(identity: track.identity, kind: track.kind, failures: failures))
      }
      guard let ssrc = track.ssrc, phase == .connected else { continue }
      let missing = track.stream?.pollMissing(at: now, roundTrip: roundTrip) ?? []
      if !missing.isEmpty {
        let nack = GenericNACK(sender: controlSSRC, media: ssrc, sequenceNumbers: missing)
        send(control: RTCPPacket.compound([.nack(nack)]))
      }
      if track.video.asker.poll(at: now) {
        send(control: RTCPPacket.compound([.pictureLossIndication(sender: controlSSRC, media: ssrc)]))
      }
    }
  }

  mutating func sendFeedback(at now: Instant) {
    guard let due = feedback.nextDeadline, due <= now, phase == .connected else { return }
    let media = tracks.lazy.compactMap(\.ssrc).first ?? SSRC(0)
    while let packet = feedback.poll(at: now, sender: controlSSRC, media: media) { send(control: packet) }
  }

  /// Sender reports of our tracks, and report blocks on all that is received (RFC 3550 §6.4).
  mutating func sendReports(at now: Instant) {
    guard let due = nextReport, due <= now, phase == .connected else { return }
    nextReport = now + Self.reportInterval
    for packet in reports(at: now) { send(control: packet) }
  }

  private func reports(at now: Instant) -> [[UInt8]] {
    let time = NTPTime(unixNanoseconds: unixNanoseconds(at: now))
    var blocks = tracks.compactMap { $0.stream?.report(at: now) }
    var packets: [[UInt8]] = []
    for sender in senders {
      let count = min(blocks.count, Self.blockLimit)
      guard
        let report = sender.statistics.report(at: now, ntpTime: time, blocks: Array(blocks.prefix(count)))
      else { continue }
      blocks.removeFirst(count)
      packets.append(RTCPPacket.compound([.senderReport(report), description(of: sender.ssrc)]))
    }
    while !blocks.isEmpty {
      let count = min(blocks.count, Self.blockLimit)
      let report = ReceiverReport(ssrc: controlSSRC, blocks: Array(blocks.prefix(count)))
      blocks.removeFirst(count)
      packets.append(RTCPPacket.compound([.receiverReport(report), description(of: controlSSRC)]))
    }
    return packets
  }

  private func description(of ssrc: SSRC) -> RTCPPacket {
    .sourceDescription([SourceDescription(ssrc: ssrc, canonicalName: OfferBuilder.canonicalName)])
  }

  /// BYE for what we sent (RFC 3550 §6.6).
  mutating func sayGoodbye() {
    queue.removeAll()
    control.removeAll()
    guard !senders.isEmpty else { return }
    send(
      control: RTCPPacket.compound([
        .receiverReport(ReceiverReport(ssrc: controlSSRC, blocks: [])),
        .goodbye(Goodbye(sources: senders.map(\.ssrc))),
      ]))
  }
}
