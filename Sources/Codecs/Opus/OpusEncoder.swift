import CPalbeOpus
import PalbeUnits

/// One stream's Opus encoder. It allocates when it is made and never again.
///
///     var encoder = try OpusEncoder(OpusConfiguration())
///     let packet = try [UInt8](capacity: Opus.maximumFrameByteCount) { output in
///       try encoder.encode(samples.span, into: &output)   // 960 samples: 20 ms
///     }
@safe
public struct OpusEncoder: ~Copyable, @unchecked Sendable {
  // Sendable because the state behind the pointer has one owner, and moves with it.
  private let state: OpaquePointer
  /// As it was made, with the bitrate and loss of later calls.
  public private(set) var configuration: OpusConfiguration

  /// Throws `invalidConfiguration` for a value out of its documented range.
  public init(_ configuration: OpusConfiguration) throws(OpusError) {
    guard configuration.channels == 1 || configuration.channels == 2,
      (6_000...510_000).contains(configuration.bitrate.bitsPerSecond),
      (0...100).contains(configuration.expectedLossPercent), (0...10).contains(configuration.complexity)
    else { throw .invalidConfiguration }
    var code: Int32 = 0
    let application = configuration.application == .voice ? OPUS_APPLICATION_VOIP : OPUS_APPLICATION_AUDIO
    let created = unsafe opus_encoder_create(
      Int32(Opus.sampleRate), Int32(configuration.channels), application, &code)
    guard let state = unsafe created else { throw .library(code: code) }
    do throws(OpusError) {
      try unsafe Self.configure(state, configuration)
    } catch {
      unsafe opus_encoder_destroy(state)
      throw error
    }
    unsafe self.state = state
    self.configuration = configuration
  }

  deinit { unsafe opus_encoder_destroy(state) }

  private static func configure(
    _ state: OpaquePointer, _ configuration: OpusConfiguration
  ) throws(OpusError) {
    try unsafe set(state, OPUS_SET_BITRATE_REQUEST, Int32(configuration.bitrate.bitsPerSecond))
    try unsafe set(state, OPUS_SET_INBAND_FEC_REQUEST, configuration.usesInbandFEC ? 1 : 0)
    try unsafe set(state, OPUS_SET_PACKET_LOSS_PERC_REQUEST, Int32(configuration.expectedLossPercent))
    try unsafe set(state, OPUS_SET_DTX_REQUEST, configuration.usesDTX ? 1 : 0)
    try unsafe set(state, OPUS_SET_COMPLEXITY_REQUEST, Int32(configuration.complexity))
    guard configuration.application == .voice else { return }
    try unsafe set(state, OPUS_SET_SIGNAL_REQUEST, OPUS_SIGNAL_VOICE)
  }

  private static func set(_ state: OpaquePointer, _ request: Int32, _ value: Int32) throws(OpusError) {
    _ = try checked(unsafe palbe_opus_encoder_set(state, request, value))
  }

  /// Changes the target rate, 6 to 510 kbit/s.
  public mutating func setBitrate(_ bitrate: DataRate) throws(OpusError) {
    guard (6_000...510_000).contains(bitrate.bitsPerSecond) else { throw .invalidConfiguration }
    try unsafe Self.set(state, OPUS_SET_BITRATE_REQUEST, Int32(bitrate.bitsPerSecond))
    configuration.bitrate = bitrate
  }

  /// Samples a channel by which the decoded signal lags the encoder's input, not counting the network.
  public var lookahead: Int {
    var value: Int32 = 0
    _ = unsafe palbe_opus_encoder_get(state, OPUS_GET_LOOKAHEAD_REQUEST, &value)
    return Int(value)
  }

  /// Encodes one frame and appends its packet to `output`. Allocates nothing.
  ///
  /// - Parameters:
  ///   - samples: one frame of 2.5, 5, 10, 20, 40 or 60 ms at 48 kHz; two channels are interleaved.
  ///   - output: room for `Opus.maximumFrameByteCount` bytes holds any frame up to 20 ms; with less room the
  ///     packet is made smaller.
  /// - Returns: the packet's bytes; with DTX 1 or 2 mean that it need not be sent.
  @discardableResult @_lifetime(output: copy output)
  public mutating func encode(
    _ samples: Span<Int16>, into output: inout OutputSpan<UInt8>
  ) throws(OpusError) -> Int {
    let perChannel = samples.count / configuration.channels
    guard samples.count == perChannel * configuration.channels, Opus.isFrameLength(perChannel) else {
      throw .invalidFrameLength(samples: samples.count)
    }
    let state = unsafe state
    let written = unsafe samples.withUnsafeBufferPointer { input in
      unsafe output.withUnsafeMutableBufferPointer { buffer, count -> Int32 in
        let room = buffer.count - count
        guard room > 0, let base = buffer.baseAddress, let pcm = input.baseAddress else {
          return OPUS_BUFFER_TOO_SMALL
        }
        let result = unsafe opus_encode(
          state, pcm, Int32(perChannel), base + count, Int32(min(room, 4_000)))
        if result > 0 { count += Int(result) }
        return result
      }
    }
    return try checked(written, needed: 1, have: output.freeCapacity)
  }

  /// Forgets the signal so far, as after a pause of the stream.
  public mutating func reset() { _ = unsafe palbe_opus_encoder_reset(state) }
}
