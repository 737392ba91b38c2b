import PalbeOpus

/// Sounds and loops that several tests use.
enum OpusSignals {
  /// A chord whose loudness moves, so that one 20 ms frame differs from the next; `frame` from 0 up.
  static func frame(_ frame: Int, channels: Int = 1) -> [Int16] {
    (0..<960).flatMap { sample -> [Int16] in
      let index = frame * 960 + sample
      // Triangles of 200 and 310 Hz, without libm.
      func triangle(_ period: Int) -> Int { abs(index * 4 * 1_000 / period % 4_000 - 2_000) - 1_000 }
      let swell = 2 + abs(index / 480 % 16 - 8)
      let value = Int16((triangle(240) * 6 + triangle(155) * 3) * swell / 10)
      return [Int16](repeating: value, count: channels)
    }
  }

  static func packets(_ encoder: inout OpusEncoder, frames: Int) throws -> [[UInt8]] {
    var packets = [[UInt8]]()
    for index in 0..<frames {
      let samples = frame(index, channels: encoder.configuration.channels)
      packets.append(try packet(&encoder, samples))
    }
    return packets
  }

  static func packet(_ encoder: inout OpusEncoder, _ samples: [Int16]) throws -> [UInt8] {
    try [UInt8](capacity: Opus.maximumFrameByteCount) { output throws(OpusError) in
      try encoder.encode(samples.span, into: &output)
    }
  }

  static func decode(
    _ decoder: inout OpusDecoder, _ packet: [UInt8], room: Int = Opus.maximumSamplesPerPacket * 2
  ) throws -> [Int16] {
    try [Int16](capacity: room) { output throws(OpusError) in try decoder.decode(packet.span, into: &output) }
  }

  static func conceal(_ decoder: inout OpusDecoder, samples: Int, room: Int = 960) throws -> [Int16] {
    try [Int16](capacity: room) { output throws(OpusError) in
      try decoder.conceal(samples: samples, into: &output)
    }
  }

  static func decodeFEC(_ decoder: inout OpusDecoder, from next: [UInt8]) throws -> [Int16] {
    try [Int16](capacity: 960) { output throws(OpusError) in
      try decoder.decodeFEC(from: next.span, samples: 960, into: &output)
    }
  }

  /// The mean square.
  static func energy(_ samples: some Collection<Int16>) -> Double {
    samples.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(max(1, samples.count))
  }

  static func difference(_ first: [Int16], _ second: [Int16]) -> Double {
    zip(first, second).reduce(0.0) { sum, pair in
      let distance = Double(pair.0) - Double(pair.1)
      return sum + distance * distance
    } / Double(max(1, min(first.count, second.count)))
  }
}

// The testing macros cannot pass a span on.
extension OpusDecoder {
  static func sampleCount(of packet: [UInt8]) -> Int? { sampleCount(of: packet.span) }
}
