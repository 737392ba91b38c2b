import Glibc
import PalbeSFUCore

/// The families, under LiveKit's names where the meaning is the same (livekit-protocol 2, Prometheus names).
extension Exposition {
  private typealias ByKind = WorkerStatistics.ByKind

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
    family("livekit_packet_total", .counter, "RTP packets; repairs sent are not counted.") {
      $0.sample([incoming, initial], value: totals.received.packets)
      $0.sample([incoming, again], value: totals.repairsReceived.packets)
      $0.sample([outgoing, initial], value: totals.sent.packets)
    }
    family("livekit_packet_bytes", .counter, "Payload bytes of RTP packets.") {
      $0.sample([incoming, initial], value: totals.received.bytes)
      $0.sample([incoming, again], value: totals.repairsReceived.bytes)
      $0.sample([outgoing, initial], value: totals.sent.bytes)
    }
    family("livekit_packet_loss_total", .counter, "Packets of publishers that never came.") {
      $0.sample([incoming], value: totals.lost)
    }
    family("livekit_nack_total", .counter, "Requests for lost packets.") {
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

  /// What Prometheus' own client libraries tell of a process.
  mutating func addProcess(startedAt: Int64) {
    family("process_start_time_seconds", .gauge, "When the process started, since 1970.") {
      $0.sample(value: startedAt)
    }
    var usage = rusage()
    if getrusage(RUSAGE_SELF.rawValue, &usage) == 0 {
      let microseconds =
        (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1_000_000 + usage.ru_utime.tv_usec
        + usage.ru_stime.tv_usec
      family("process_cpu_seconds_total", .counter, "Processor time, user and system.") {
        $0.sample(value: Double(microseconds) / 1e6)
      }
    }
    if let pages = Self.residentPages() {
      family("process_resident_memory_bytes", .gauge, "Memory in use.") {
        $0.sample(value: pages * sysconf(Int32(_SC_PAGESIZE)))
      }
    }
    if let count = Self.openDescriptorCount() {
      family("process_open_fds", .gauge, "Open file descriptors.") { $0.sample(value: count) }
    }
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      family("process_max_fds", .gauge, "Open file descriptors that there may be.") {
        $0.sample(value: UInt64(limit.rlim_cur))
      }
    }
  }

  /// proc(5): the second number of `statm`.
  private static func residentPages() -> Int? {
    guard let file = fopen("/proc/self/statm", "r") else { return nil }
    defer { fclose(file) }
    var buffer = [CChar](repeating: 0, count: 256)
    guard fgets(&buffer, 255, file) != nil else { return nil }
    let words = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      .split(separator: " ")
    return words.count > 1 ? Int(words[1]) : nil
  }

  private static func openDescriptorCount() -> Int? {
    guard let folder = opendir("/proc/self/fd") else { return nil }
    defer { closedir(folder) }
    var count = 0
    while readdir(folder) != nil { count += 1 }
    // "." and "..", and the folder's own.
    return max(0, count - 3)
  }
}
