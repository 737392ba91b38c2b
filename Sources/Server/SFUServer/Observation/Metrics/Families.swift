import PalbeSFUCore
import PalbeServerObservation

/// The families, under LiveKit's names where the meaning is the same (livekit-protocol 2, Prometheus names).
extension Exposition {
  private typealias ByKind = WorkerStatistics.ByKind

  /// A histogram's samples.
  mutating func samples(_ histogram: Histogram) {
    samples(bounds: histogram.bounds, counts: histogram.counts, sum: histogram.sum)
  }

  mutating func addRooms(_ all: WorkerStatistics) {
    family("livekit_room_total", .gauge, "Rooms.") { $0.sample(value: all.rooms) }
    family("livekit_room_duration_seconds", .histogram, "How long rooms were there.") {
      $0.samples(all.totals.roomSeconds)
    }
    family("livekit_participant_total", .gauge, "Participants.") { $0.sample(value: all.participants) }
    family("livekit_participant_join_total", .counter, "Joins by how far they came.") {
      $0.sample([("state", "signal_connected")], value: all.totals.joins)
      $0.sample([("state", "signal_failed")], value: all.totals.joinsRefused)
      $0.sample([("state", "rtc_connected")], value: all.totals.connections)
    }
    family("livekit_track_published_total", .gauge, "Tracks that are published.") {
      $0.samples(all.publishedTracks)
    }
    family("livekit_track_subscribed_total", .gauge, "Subscriptions to tracks.") {
      $0.samples(all.subscribedTracks)
    }
    family("livekit_session_start_time_ms", .histogram, "From the join until media can flow.") {
      $0.samples(all.totals.connectMilliseconds)
    }
    family("livekit_session_duration_ms", .histogram, "How long participants stayed.") {
      $0.samples(all.totals.sessionMilliseconds)
    }
  }

  private mutating func samples(_ counts: ByKind) {
    sample([("kind", "AUDIO")], value: counts.audio)
    sample([("kind", "VIDEO")], value: counts.video)
  }

  mutating func addMedia(_ totals: WorkerTotals) {
    let incoming = ("direction", "incoming")
    let outgoing = ("direction", "outgoing")
    let initial = ("transmission", "initial")
    let again = ("transmission", "retransmit")
    family("livekit_packet_total", .counter, "RTP packets; a repair is one that was sent again.") {
      $0.sample([incoming, initial], value: totals.received.packets)
      $0.sample([incoming, again], value: totals.repairsReceived.packets)
      $0.sample([outgoing, initial], value: totals.sent.packets)
      $0.sample([outgoing, again], value: totals.repairsSent.packets)
    }
    family("livekit_packet_bytes", .counter, "Payload bytes of RTP packets; of repairs sent all bytes.") {
      $0.sample([incoming, initial], value: totals.received.bytes)
      $0.sample([incoming, again], value: totals.repairsReceived.bytes)
      $0.sample([outgoing, initial], value: totals.sent.bytes)
      $0.sample([outgoing, again], value: totals.repairsSent.bytes)
    }
    family(
      "palbe_sfu_packets_refused_total", .counter,
      "Packets kept back because their numbers had been used under the same key; must stay 0."
    ) { $0.sample(value: totals.refused) }
    family("livekit_packet_loss_total", .counter, "Packets of publishers that never came.") {
      $0.sample([incoming], value: totals.lost)
    }
    family("livekit_nack_total", .counter, "Packets that were asked for again.") {
      $0.sample([incoming], value: totals.nacksReceived)
      $0.sample([outgoing], value: totals.nacksSent)
    }
    family("livekit_pli_total", .counter, "Requests for key frames.") {
      $0.sample([incoming], value: totals.pictureLossesReceived)
      $0.sample([outgoing], value: totals.pictureLossesSent)
    }
    family("livekit_fir_total", .counter, "Requests for key frames in their older form.") {
      $0.sample([incoming], value: totals.intraRequestsReceived)
    }
    family("livekit_rtt_ms", .histogram, "Round trips to participants, every 5 s.") {
      $0.samples(totals.roundTripMilliseconds)
    }
    family("livekit_packet_loss_percent", .histogram, "Loss of participants' worse direction, every 5 s.") {
      $0.samples(totals.lossPercents)
    }
    family("livekit_quality_score", .histogram, "Connection scores of participants, every 5 s.") {
      $0.samples(totals.scores)
    }
  }
}
