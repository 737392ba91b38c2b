import CPalbeOpus

/// One stream's Opus decoder with loss concealment. It allocates when it is made and never again.
///
/// A jitter buffer calls it once a frame, in order: `decode` when it has the packet; for a lost one
/// `decodeFEC` when it already has the packet after it, else `conceal`.
@safe
public struct OpusDecoder: ~Copyable, @unchecked Sendable {
  // Sendable because the state behind the pointer has one owner, and moves with it.
  private let state: OpaquePointer
  /// 1 or 2; a packet of the other kind is mixed down or doubled.
  public let channels: Int

  /// Throws `invalidConfiguration` unless `channels` is 1 or 2.
  public init(channels: Int = 1) throws(OpusError) {
    guard channels == 1 || channels == 2 else { throw .invalidConfiguration }
    var code: Int32 = 0
    let created = unsafe opus_decoder_create(Int32(Opus.sampleRate), Int32(channels), &code)
    guard let state = unsafe created else { throw .library(code: code) }
    unsafe self.state = state
    self.channels = channels
  }

  deinit { unsafe opus_decoder_destroy(state) }

  /// Samples a channel at 48 kHz that a packet holds, 120 to 5,760; nil when it breaks the format.
  public static func sampleCount(of packet: Span<UInt8>) -> Int? {
    let count = unsafe packet.withUnsafeBufferPointer { bytes -> Int32 in
      guard let base = bytes.baseAddress, !bytes.isEmpty, let length = Int32(exactly: bytes.count) else {
        return 0
      }
      return unsafe opus_packet_get_nb_samples(base, length, Int32(Opus.sampleRate))
    }
    return count > 0 ? Int(count) : nil
  }

  /// Decodes a packet and appends its samples to `output`, interleaved when there are two channels.
  ///
  /// Allocates nothing. A packet that breaks the format throws `invalidPacket` and leaves the decoder as it
  /// was.
  /// - Returns: samples a channel, 120 to 5,760 (`sampleCount(of:)`).
  @discardableResult @_lifetime(output: copy output)
  public mutating func decode(
    _ packet: Span<UInt8>, into output: inout OutputSpan<Int16>
  ) throws(OpusError) -> Int {
    guard !packet.isEmpty else { throw .invalidPacket }
    return try run(packet, samples: output.freeCapacity / channels, fec: 0, into: &output)
  }

  /// Makes up `samples` samples a channel for a lost packet from what was heard before it; fades out when
  /// nothing follows.
  ///
  /// - Parameter samples: a multiple of 120 up to 5,760: the length of what was lost.
  @discardableResult @_lifetime(output: copy output)
  public mutating func conceal(
    samples: Int, into output: inout OutputSpan<Int16>
  ) throws(OpusError) -> Int {
    try checkLoss(samples, room: output.freeCapacity)
    return try run(Span(), samples: samples, fec: 0, into: &output)
  }

  /// Rebuilds a lost packet from the copy that its successor carries, and conceals when there is none.
  ///
  /// - Parameters:
  ///   - next: the packet after the lost one; decode it afterwards as usual.
  ///   - samples: a multiple of 120 up to 5,760: the length of what was lost.
  @discardableResult @_lifetime(output: copy output)
  public mutating func decodeFEC(
    from next: Span<UInt8>, samples: Int, into output: inout OutputSpan<Int16>
  ) throws(OpusError) -> Int {
    guard !next.isEmpty else { throw .invalidPacket }
    try checkLoss(samples, room: output.freeCapacity)
    return try run(next, samples: samples, fec: 1, into: &output)
  }

  /// Forgets the signal so far.
  public mutating func reset() { _ = unsafe palbe_opus_decoder_reset(state) }

  private func checkLoss(_ samples: Int, room: Int) throws(OpusError) {
    guard samples > 0, samples <= Opus.maximumSamplesPerPacket, samples.isMultiple(of: 120) else {
      throw .invalidFrameLength(samples: samples)
    }
    guard room >= samples * channels else { throw .outputTooSmall(needed: samples * channels, have: room) }
  }

  @_lifetime(output: copy output)
  private mutating func run(
    _ packet: Span<UInt8>, samples: Int, fec: Int32, into output: inout OutputSpan<Int16>
  ) throws(OpusError) -> Int {
    guard let length = Int32(exactly: packet.count) else { throw .invalidPacket }
    let have = output.freeCapacity
    let room = Int32(min(samples, Opus.maximumSamplesPerPacket))
    let (state, channels) = unsafe (state, channels)
    let decoded = unsafe packet.withUnsafeBufferPointer { bytes in
      unsafe output.withUnsafeMutableBufferPointer { buffer, count -> Int32 in
        guard room > 0, let base = buffer.baseAddress else { return OPUS_BUFFER_TOO_SMALL }
        let data = length == 0 ? nil : bytes.baseAddress
        let result = unsafe opus_decode(state, data, length, base + count, room, fec)
        if result > 0 { count += Int(result) * channels }
        return result
      }
    }
    let needed = (Self.sampleCount(of: packet) ?? samples) * channels
    return try checked(decoded, needed: needed, have: have)
  }
}
