/// A picture in planar YUV 4:2:0 with eight bits a sample: what VP8 codes and Y4M files hold.
///
/// Planes are tightly packed, row after row from the top. Luma has one sample a pixel; each chroma plane has
/// one sample for two by two pixels, and where a side is odd its last sample covers one pixel.
///
///     var picture = I420Image(width: 640, height: 360)   // black
///     var pixels = picture.mutableLuma
///     pixels[y * 640 + x] = 235
public struct I420Image: Equatable, Sendable {
  /// Pixels in a row, at least 1.
  public private(set) var width: Int
  /// Rows, at least 1.
  public private(set) var height: Int
  /// Luma: `width * height` samples.
  public private(set) var y: [UInt8]
  /// Blue difference: `chromaWidth * chromaHeight` samples, 128 is neutral.
  public private(set) var u: [UInt8]
  /// Red difference: `chromaWidth * chromaHeight` samples, 128 is neutral.
  public private(set) var v: [UInt8]

  /// The largest side a picture may have: VP8's 14 bits.
  public static let maximumSide = 16_383

  /// Samples in a chroma row.
  public var chromaWidth: Int { (width + 1) / 2 }
  /// Rows of a chroma plane.
  public var chromaHeight: Int { (height + 1) / 2 }
  /// Bytes of the three planes together.
  public var byteCount: Int { y.count + u.count + v.count }

  /// A picture of one colour; black unless told otherwise. Both sides must be 1 to `maximumSide`.
  public init(width: Int, height: Int, luma: UInt8 = 16, u: UInt8 = 128, v: UInt8 = 128) {
    precondition((1...Self.maximumSide).contains(width) && (1...Self.maximumSide).contains(height))
    self.width = width
    self.height = height
    let chroma = ((width + 1) / 2) * ((height + 1) / 2)
    y = [UInt8](repeating: luma, count: width * height)
    self.u = [UInt8](repeating: u, count: chroma)
    self.v = [UInt8](repeating: v, count: chroma)
  }

  /// From three planes; nil when a side is out of range or a plane has the wrong number of samples.
  public init?(width: Int, height: Int, y: [UInt8], u: [UInt8], v: [UInt8]) {
    guard (1...Self.maximumSide).contains(width), (1...Self.maximumSide).contains(height) else { return nil }
    let chroma = ((width + 1) / 2) * ((height + 1) / 2)
    guard y.count == width * height, u.count == chroma, v.count == chroma else { return nil }
    (self.width, self.height, self.y, self.u, self.v) = (width, height, y, u, v)
  }

  /// Makes this a picture of the given size and keeps its memory when it has that size already; the samples
  /// are then the old ones, otherwise black.
  public mutating func setSize(width: Int, height: Int) {
    if width != self.width || height != self.height { self = I420Image(width: width, height: height) }
  }

  /// The luma samples, to be changed in place.
  public var mutableLuma: MutableSpan<UInt8> {
    @_lifetime(&self) mutating get { y.mutableSpan }
  }
  /// The blue difference samples, to be changed in place.
  public var mutableU: MutableSpan<UInt8> {
    @_lifetime(&self) mutating get { u.mutableSpan }
  }
  /// The red difference samples, to be changed in place.
  public var mutableV: MutableSpan<UInt8> {
    @_lifetime(&self) mutating get { v.mutableSpan }
  }
}
