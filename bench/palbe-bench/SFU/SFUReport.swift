enum SFUReport {
  static func json(_ rows: [SFURow]) -> String {
    let objects = rows.map { row in
      "{\"scenario\":\"\(row.scenario)\",\"subscribers\":\(row.subscribers),\"send\":\"\(row.send)\","
        + "\"pps_per_core\":\(fixed(row.packetsPerCore, 0)),"
        + "\"limit_pps_per_core\":\(fixed(row.limitPerCore, 0)),"
        + "\"ratio\":\(fixed(row.ratio, 3)),\"latency_ms_p50\":\(fixed(row.delays.p50, 3)),"
        + "\"latency_ms_p99\":\(fixed(row.delays.p99, 3)),"
        + "\"mallocs_per_packet\":\(fixed(row.mallocsPerPacket, 3)),"
        + "\"bytes_per_subscriber\":\(row.bytesPerSubscriber)}"
    }
    return "[\n  " + objects.joined(separator: ",\n  ") + "\n]"
  }

  static func text(_ rows: [SFURow]) -> String {
    let lines = rows.map { row in
      [
        row.scenario, "\(row.subscribers)", row.send, fixed(row.packetsPerCore, 0),
        fixed(row.limitPerCore, 0),
        fixed(row.ratio, 2), fixed(row.ratios.min() ?? 0, 2) + " to " + fixed(row.ratios.max() ?? 0, 2),
        fixed(row.delays.p50, 2), fixed(row.delays.p99, 2),
        fixed(row.limitDelays.p50, 2) + " / " + fixed(row.limitDelays.p99, 2), fixed(row.mallocsPerPacket, 3),
        fixed(Double(row.bytesPerSubscriber) / 1_000, 1),
      ]
    }
    return table(
      [
        "scenario", "subscribers", "send", "packets/s", "relay", "ratio", "spread", "p50 ms", "p99 ms",
        "relay's", "mallocs", "kB each",
      ], lines, left: [0, 2])
  }
}
