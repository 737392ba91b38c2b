import PalbeRTP
import PalbeUnits
import PalbeWire

extension Participant {
  /// Takes up a compound RTCP packet of this participant's, which SRTCP has authenticated.
  func receiveControl(_ compound: Span<UInt8>, over transport: PeerTransport, at now: Instant) {
    var reader = RTCPReader(compound, readsNames: false)
    // A packet takes four bytes at least, so this ends with the datagram whatever is malformed in it.
    for _ in 0..<compound.count / 4 {
      do throws(WireError) {
        guard let packet = try reader.next() else { return }
        take(packet, over: transport, at: now)
      } catch { continue }
    }
  }

  private func take(_ packet: RTCPPacket, over transport: PeerTransport, at now: Instant) {
    switch packet {
    case .senderReport(let report):
      if let stream = uplink.streams[report.ssrc], stream.received(report, at: now) {
        // The first one: let subscribers play audio and video in step at once.
        for downTrack in stream.track.downTracks { downTrack.subscriber.wake(at: now) }
        for downTrack in stream.track.downTracks { downTrack.subscriber.nextReportAt = now }
      }
      for block in report.blocks { downlink.downTrack(block.ssrc)?.received(block, at: now) }
    case .receiverReport(let report):
      for block in report.blocks { downlink.downTrack(block.ssrc)?.received(block, at: now) }
    case .nack(let nack):
      guard let downTrack = downlink.downTrack(nack.media), downTrack.ssrc == nack.media else { return }
      nack.forEach {
        context.totals.nacksReceived += 1
        context.repairs.append(WaitingRepair(track: downTrack, sequence: $0))
      }
    case .pictureLossIndication(_, let media):
      context.totals.pictureLossesReceived += 1
      refreshPicture(media, at: now)
    case .fullIntraRequest(let request):
      context.totals.intraRequestsReceived += 1
      for entry in request.entries { refreshPicture(entry.ssrc, at: now) }
    case .goodbye(let goodbye):
      for ssrc in goodbye.sources { uplink.streams[ssrc]?.ended() }
    // What it says of a link that we send nothing over is not ours.
    case .transportFeedback(let feedback): if transport === downTransport { receive(feedback, at: now) }
    case .receiverEstimate(let estimate): if transport === downTransport { receive(estimate, at: now) }
    case .sourceDescription, .unknown: return
    }
  }

  private func refreshPicture(_ media: SSRC, at now: Instant) {
    guard let downTrack = downlink.downTrack(media) else { return }
    downTrack.track.refreshPicture(for: downTrack, at: now)
  }
}
