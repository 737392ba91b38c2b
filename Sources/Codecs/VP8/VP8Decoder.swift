import CPalbeVPX
import PalbeUnits

/// One stream's VP8 decoder (RFC 6386).
///
/// A frame is decoded only after every frame before it since the last key frame. After any error except
/// `pictureTooLarge` ask for a key frame; until it comes, later frames decode to damaged pictures or throw.
@safe
public struct VP8Decoder: ~Copyable, @unchecked Sendable {
  // Sendable because the context behind the pointer has one owner, and moves with it.
  private let context: UnsafeMutablePointer<vpx_codec_ctx_t>
  private var hasKeyFrame = false

  /// A key frame that announces more pixels is refused before any memory is taken for it.
  public let maximumPixels: Int

  /// - Parameters:
  ///   - maximumPixels: the largest picture, width times height; 1920x1088 unless told otherwise.
  ///   - threads: 1 to 8.
  public init(maximumPixels: Int = 1_920 * 1_088, threads: Int = 1) throws(VP8Error) {
    guard maximumPixels > 0, (1...8).contains(threads) else { throw .invalidConfiguration }
    var library = vpx_codec_dec_cfg_t(threads: UInt32(threads), w: 0, h: 0)
    let context = UnsafeMutablePointer<vpx_codec_ctx_t>.allocate(capacity: 1)
    unsafe context.initialize(to: vpx_codec_ctx_t())
    let result = unsafe palbe_vp8_decoder_init(context, &library)
    guard result == VPX_CODEC_OK else {
      unsafe context.deallocate()
      throw .library(code: result.rawValue)
    }
    unsafe self.context = context
    self.maximumPixels = maximumPixels
  }

  deinit {
    _ = unsafe vpx_codec_destroy(context)
    unsafe context.deallocate()
  }

  /// Decodes one frame into `picture`, whose memory is used again when the size is the same.
  ///
  /// - Parameters:
  ///   - frame: one whole frame as `VP8Encoder` or any other encoder made it.
  ///   - picture: becomes the decoded picture; unchanged when the result is false or an error is thrown.
  /// - Returns: false for a frame that is not meant to be shown.
  public mutating func decode(_ frame: Span<UInt8>, into picture: inout I420Image) throws(VP8Error) -> Bool {
    let header = try VP8FrameHeader.parse(frame)
    if let size = header.size {
      guard size.width * size.height <= maximumPixels else {
        throw .pictureTooLarge(width: Int32(size.width), height: Int32(size.height))
      }
    } else if !hasKeyFrame {
      throw .needsKeyFrame
    }
    guard let length = UInt32(exactly: frame.count) else { throw .invalidFrame }
    let context = unsafe context
    let result = unsafe frame.withUnsafeBufferPointer { bytes in
      unsafe vpx_codec_decode(context, bytes.baseAddress, length, nil, 0)
    }
    guard result == VPX_CODEC_OK else {
      throw result == VPX_CODEC_MEM_ERROR ? .library(code: result.rawValue) : .invalidFrame
    }
    if header.isKeyFrame { hasKeyFrame = true }

    var iterator: vpx_codec_iter_t?
    let image = unsafe vpx_codec_get_frame(context, &iterator)
    var isCorrupt: Int32 = 0
    let asked = unsafe palbe_vpx_get(context, Int32(VP8D_GET_FRAME_CORRUPTED.rawValue), &isCorrupt)
    guard asked == VPX_CODEC_OK, isCorrupt == 0 else { throw .corruptFrame }
    guard let image = unsafe image else { return false }
    try unsafe Self.copy(image, into: &picture)
    return true
  }

  /// Decodes one frame into a new picture; nil for a frame that is not meant to be shown.
  public mutating func decode(_ frame: Span<UInt8>) throws(VP8Error) -> I420Image? {
    var picture = I420Image(width: 1, height: 1)
    return try decode(frame, into: &picture) ? picture : nil
  }

  private static func copy(
    _ image: UnsafePointer<vpx_image_t>, into picture: inout I420Image
  ) throws(VP8Error) {
    let (width, height) = unsafe (Int(image.pointee.d_w), Int(image.pointee.d_h))
    guard unsafe image.pointee.fmt == VPX_IMG_FMT_I420, (1...I420Image.maximumSide).contains(width),
      (1...I420Image.maximumSide).contains(height)
    else { throw .invalidFrame }
    picture.setSize(width: width, height: height)
    let (chromaWidth, chromaHeight) = (picture.chromaWidth, picture.chromaHeight)
    var plane = picture.mutableLuma
    unsafe copy(image, plane: VPX_PLANE_Y, width: width, height: height, into: &plane)
    plane = picture.mutableU
    unsafe copy(image, plane: VPX_PLANE_U, width: chromaWidth, height: chromaHeight, into: &plane)
    plane = picture.mutableV
    unsafe copy(image, plane: VPX_PLANE_V, width: chromaWidth, height: chromaHeight, into: &plane)
  }

  private static func copy(
    _ image: UnsafePointer<vpx_image_t>, plane: Int32, width: Int, height: Int,
    into target: inout MutableSpan<UInt8>
  ) {
    let stride = unsafe Int(palbe_vpx_stride(image, plane))
    guard let source = unsafe palbe_vpx_plane(image, plane), target.count == width * height else { return }
    unsafe target.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress else { return }
      for row in 0..<height {
        unsafe (base + row * width).update(from: source + row * stride, count: width)
      }
    }
  }
}
