import CPalbeVPX
import PalbeUnits

/// One stream's VP8 encoder (RFC 6386).
///
///     var encoder = try VP8Encoder(VP8Configuration())
///     var buffer = [UInt8](capacity: encoder.maximumFrameByteCount) { output in
///       let frame = try encoder.encode(picture, capturedAt: now, forceKeyFrame: false, into: &output)
///     }
@safe
public struct VP8Encoder: ~Copyable, @unchecked Sendable {
  // Sendable because the context behind the pointer has one owner, and moves with it.
  private let context: UnsafeMutablePointer<vpx_codec_ctx_t>
  private var libraryConfiguration: vpx_codec_enc_cfg_t
  private var origin: Instant?
  private var lastTicks: Int64 = -1

  /// As it was made, with the bitrate of later calls.
  public private(set) var configuration: VP8Configuration

  /// Ticks of the time base the encoder is given, RTP's.
  private static let ticksPerSecond: Int64 = 90_000

  /// Throws `invalidConfiguration` for a value out of its documented range.
  public init(_ configuration: VP8Configuration) throws(VP8Error) {
    guard configuration.isValid else { throw .invalidConfiguration }
    var library = unsafe vpx_codec_enc_cfg_t()
    try checked(unsafe vpx_codec_enc_config_default(vpx_codec_vp8_cx(), &library, 0))
    unsafe Self.fill(&library, from: configuration)
    let context = UnsafeMutablePointer<vpx_codec_ctx_t>.allocate(capacity: 1)
    unsafe context.initialize(to: vpx_codec_ctx_t())
    let result = unsafe palbe_vp8_encoder_init(context, &library)
    guard result == VPX_CODEC_OK else {
      unsafe context.deallocate()
      throw .library(code: result.rawValue)
    }
    do throws(VP8Error) {
      try unsafe Self.configure(context, configuration)
    } catch {
      _ = unsafe vpx_codec_destroy(context)
      unsafe context.deallocate()
      throw error
    }
    unsafe self.context = context
    unsafe self.libraryConfiguration = library
    self.configuration = configuration
  }

  deinit {
    _ = unsafe vpx_codec_destroy(context)
    unsafe context.deallocate()
  }

  private static func fill(_ library: inout vpx_codec_enc_cfg_t, from configuration: VP8Configuration) {
    unsafe library.g_w = UInt32(configuration.width)
    unsafe library.g_h = UInt32(configuration.height)
    unsafe library.g_timebase = vpx_rational_t(num: 1, den: Int32(ticksPerSecond))
    unsafe library.g_threads = UInt32(configuration.threads)
    unsafe library.g_lag_in_frames = 0
    unsafe library.g_error_resilient = 0
    unsafe library.g_pass = VPX_RC_ONE_PASS
    unsafe library.kf_mode = VPX_KF_DISABLED
    unsafe library.rc_end_usage = VPX_CBR
    unsafe library.rc_target_bitrate = kilobits(configuration.bitrate)
    unsafe library.rc_min_quantizer = 2
    unsafe library.rc_max_quantizer = 56
    unsafe library.rc_undershoot_pct = 100
    unsafe library.rc_overshoot_pct = 15
    unsafe library.rc_buf_initial_sz = 500
    unsafe library.rc_buf_optimal_sz = 600
    unsafe library.rc_buf_sz = 1_000
    unsafe library.rc_dropframe_thresh = 0
    unsafe library.rc_resize_allowed = 0
  }

  private static func kilobits(_ rate: DataRate) -> UInt32 { UInt32((rate.bitsPerSecond + 500) / 1_000) }

  private static func configure(
    _ context: UnsafeMutablePointer<vpx_codec_ctx_t>, _ configuration: VP8Configuration
  ) throws(VP8Error) {
    // A negative value is a fixed speed; a positive one would follow the time that encoding takes.
    try unsafe set(context, VP8E_SET_CPUUSED, -configuration.speed)
    try unsafe set(context, VP8E_SET_NOISE_SENSITIVITY, 0)
    try unsafe set(context, VP8E_SET_STATIC_THRESHOLD, 1)
    try unsafe set(context, VP8E_SET_TOKEN_PARTITIONS, 0)
    // A key frame may take what fills half of the receiver's buffer: 600 ms / 2 * 30 / s = 9 frames' worth.
    try unsafe set(context, VP8E_SET_MAX_INTRA_BITRATE_PCT, 900)
  }

  private static func set(
    _ context: UnsafeMutablePointer<vpx_codec_ctx_t>, _ control: vp8e_enc_control_id, _ value: Int
  ) throws(VP8Error) {
    try checked(unsafe palbe_vpx_set(context, Int32(control.rawValue), Int32(value)))
  }

  /// No frame is longer: what the picture has uncompressed, and a little for the smallest.
  public var maximumFrameByteCount: Int { configuration.width * configuration.height * 3 / 2 + 1_024 }

  /// Changes the target rate, 30 kbit/s to 50 Mbit/s, from the next frame on.
  public mutating func setBitrate(_ bitrate: DataRate) throws(VP8Error) {
    guard VP8Configuration.allowedRates.contains(bitrate.bitsPerSecond) else { throw .invalidConfiguration }
    unsafe libraryConfiguration.rc_target_bitrate = Self.kilobits(bitrate)
    try checked(unsafe vpx_codec_enc_config_set(context, &libraryConfiguration))
    configuration.bitrate = bitrate
  }

  /// Encodes one picture and appends its frame to `output`.
  ///
  /// - Parameters:
  ///   - picture: of the encoder's size.
  ///   - instant: when the picture was taken; the rate control learns the frame rate from it. A picture that
  ///     is not later than the one before it counts as one tick (1/90,000 s) later.
  ///   - forceKeyFrame: makes a frame that needs no other, for a receiver that joined or lost one.
  ///   - output: room for `maximumFrameByteCount` bytes always suffices.
  @_lifetime(output: copy output)
  public mutating func encode(
    _ picture: borrowing I420Image, capturedAt instant: Instant, forceKeyFrame: Bool = false,
    into output: inout OutputSpan<UInt8>
  ) throws(VP8Error) -> VP8EncodedFrame {
    guard picture.width == configuration.width, picture.height == configuration.height else {
      throw .wrongSize(
        width: Int32(truncatingIfNeeded: picture.width), height: Int32(truncatingIfNeeded: picture.height))
    }
    let ticks = nextTicks(at: instant)
    let flags = forceKeyFrame ? vpx_enc_frame_flags_t(VPX_EFLAG_FORCE_KF) : 0
    try checked(run(picture, ticks: ticks, flags: flags))

    var iterator: vpx_codec_iter_t?
    var byteCount = 0
    var isKeyFrame: Int32 = 0
    guard let bytes = unsafe palbe_vpx_next_frame(context, &iterator, &byteCount, &isKeyFrame), byteCount > 0
    else { throw .noOutput }
    guard byteCount <= output.freeCapacity else {
      throw .outputTooSmall(needed: byteCount, have: output.freeCapacity)
    }
    unsafe output.withUnsafeMutableBufferPointer { buffer, count in
      guard let base = buffer.baseAddress else { return }
      unsafe UnsafeMutableRawPointer(base + count).copyMemory(from: bytes, byteCount: byteCount)
      count += byteCount
    }
    var quantizer: Int32 = 0
    _ = unsafe palbe_vpx_get(context, Int32(VP8E_GET_LAST_QUANTIZER_64.rawValue), &quantizer)
    return VP8EncodedFrame(byteCount: byteCount, isKeyFrame: isKeyFrame != 0, quantizer: Int(quantizer))
  }

  private mutating func nextTicks(at instant: Instant) -> Int64 {
    if origin == nil { origin = instant }
    let elapsed = instant - (origin ?? instant)
    // Hours of nanoseconds times 90,000 would overflow; microseconds last for 3 million years.
    let ticks = max(lastTicks + 1, elapsed.wholeMicroseconds * 9 / 100)
    lastTicks = ticks
    return ticks
  }

  private func run(
    _ picture: borrowing I420Image, ticks: Int64, flags: vpx_enc_frame_flags_t
  ) -> vpx_codec_err_t {
    let context = unsafe context
    let (width, height) = (UInt32(configuration.width), UInt32(configuration.height))
    let duration = UInt(Self.ticksPerSecond) / UInt(configuration.framesPerSecond)
    return unsafe picture.y.withUnsafeBufferPointer { y in
      unsafe picture.u.withUnsafeBufferPointer { u in
        unsafe picture.v.withUnsafeBufferPointer { v in
          var image = unsafe vpx_image_t()
          unsafe palbe_vpx_wrap_i420(&image, width, height, y.baseAddress, u.baseAddress, v.baseAddress)
          return unsafe vpx_codec_encode(context, &image, ticks, duration, flags, UInt(VPX_DL_REALTIME))
        }
      }
    }
  }
}
