import PalbeFrameEncryption

extension SFrameCipherSuite {
  /// The name in RFC 9605 §8.1.
  var name: String { self == .aes128GCM ? "AES_128_GCM_SHA256_128" : "AES_256_GCM_SHA512_128" }
}

/// The result for people and for programs.
enum FramesReport {
  static func json(_ rows: [FramesRow]) -> String {
    let objects = rows.map { row in
      let fields = [
        "\"suite\": \"\(row.suite.name)\"", "\"bytes\": \(row.bytes)", "\"operation\": \"\(row.operation)\"",
        "\"ns\": \(fixed(row.nanoseconds, 1))", "\"limit_ns\": \(fixed(row.limit, 1))",
        "\"ratio\": \(fixed(row.ratio, 3))", "\"mallocs\": \(fixed(row.mallocs, row.mallocs == 0 ? 0 : 4))",
      ]
      return "  {" + fields.joined(separator: ", ") + "}"
    }
    return "[\n" + objects.joined(separator: ",\n") + "\n]"
  }

  static func text(_ rows: [FramesRow]) -> String {
    let head = ["suite", "frame", "what", "ours", "limit", "ratio", "mallocs"]
    let lines = rows.map { row in
      [
        row.suite.name, row.bytes < 1_000 ? "\(row.bytes) B" : "\(row.bytes / 1_000) kB", row.operation,
        "\(fixed(row.nanoseconds, 0)) ns", "\(fixed(row.limit, 0)) ns", fixed(row.ratio, 2),
        fixed(row.mallocs, row.mallocs == 0 ? 0 : 4),
      ]
    }
    return table(head, lines, left: [0, 2]) + "\n\n" + explanation
  }

  static let explanation = """
    ours     time to seal or open one frame with a track's sealer or opener: number the frame, write or read the
             header, authenticate source and clear bytes, keep the replay window, encrypt in place.
    limit    the least that OpenSSL can do it in on this machine: a context that already has its key does
             nonce, as much associated data, the bytes and the tag, in place, and nothing else.
    ratio    ours over limit, each the fastest of all slices, measured in turns in this run. 1.00 means that our
             part is free; 1.25 that it adds a quarter. We ask for at most 1.25 from 1 kB up, 1.5 at 100 B.
    mallocs  heap allocations for each frame. We ask for 0.
    """
}
