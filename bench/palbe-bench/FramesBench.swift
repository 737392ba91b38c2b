import CPalbeMallocCounter
import PalbeFrameEncryption
import PalbeUnits

/// One line of the result.
struct FramesRow {
  let suite: SFrameCipherSuite
  /// Enciphered bytes of a frame; its three clear bytes come on top.
  let bytes: Int
  let operation: String
  /// Ours and the limit, nanoseconds a frame, each the fastest of all slices.
  let nanoseconds: Double
  let limit: Double
  /// Heap allocations a frame of ours.
  let mallocs: Double

  var ratio: Double { nanoseconds / limit }
}

/// Our sealer and opener beside a bare OpenSSL context, in turns, on slabs of the same shape.
enum FramesBench {
  static let sizes = [100, 1_000, 10_000, 50_000]
  static let sliceNanoseconds: UInt64 = 1_000_000
  /// Clear bytes of a VP8 frame that is no key frame.
  static let clear = 3

  static func run(slices: Int, progress: (String) -> Void) -> [FramesRow] {
    var rows = [FramesRow]()
    for suite in SFrameCipherSuite.allCases {
      for bytes in sizes {
        progress("\(suite.name), \(bytes) B …")
        rows += measure(suite, bytes: bytes, slices: slices)
      }
    }
    return rows
  }

  static func measure(_ suite: SFrameCipherSuite, bytes: Int, slices: Int) -> [FramesRow] {
    let shape = Slab.Shape(bytes: bytes)
    var ours = OurFrames(suite, shape)
    var raw = RawFrames(suite, shape)
    // Warm up, and find how many slabs fill a slice.
    var fastest: UInt64 = 1
    for _ in 0..<4 {
      let times = (raw.turn(aadByteCount: ours.aadByteCount), ours.turn())
      fastest = min(times.0.seal, times.0.open, times.1.seal, times.1.open)
    }
    let turns = Int(sliceNanoseconds / max(fastest, 1)) + 1
    var best = (ours: Times.worst, raw: Times.worst)
    var mallocs = (seal: UInt64(0), open: UInt64(0))
    for slice in 0..<slices {
      var sum = (ours: Times(), raw: Times())
      for _ in 0..<turns {
        // Neither side always comes first.
        if slice % 2 == 0 { sum.raw += raw.turn(aadByteCount: ours.aadByteCount) }
        let aad = ours.aadByteCount
        let times = ours.turn()
        sum.ours += times
        mallocs.seal += times.sealMallocs
        mallocs.open += times.openMallocs
        if slice % 2 == 1 { sum.raw += raw.turn(aadByteCount: aad) }
      }
      best.ours.keepLower(of: sum.ours)
      best.raw.keepLower(of: sum.raw)
    }
    let frames = Double(turns * shape.count)
    return [
      FramesRow(
        suite: suite, bytes: bytes, operation: "seal", nanoseconds: Double(best.ours.seal) / frames,
        limit: Double(best.raw.seal) / frames, mallocs: Double(mallocs.seal) / frames / Double(slices)),
      FramesRow(
        suite: suite, bytes: bytes, operation: "open", nanoseconds: Double(best.ours.open) / frames,
        limit: Double(best.raw.open) / frames, mallocs: Double(mallocs.open) / frames / Double(slices)),
    ]
  }
}

/// How long a slab took, in nanoseconds, and what it allocated.
struct Times {
  var seal: UInt64 = 0
  var open: UInt64 = 0
  var sealMallocs: UInt64 = 0
  var openMallocs: UInt64 = 0

  static let worst = Times(seal: .max, open: .max)

  static func += (sum: inout Times, more: Times) {
    sum.seal += more.seal
    sum.open += more.open
  }

  mutating func keepLower(of other: Times) {
    seal = min(seal, other.seal)
    open = min(open, other.open)
  }
}

/// Frames side by side, few enough to stay in the second-level cache.
enum Slab {
  struct Shape {
    let bytes: Int
    let stride: Int
    let count: Int

    init(bytes: Int) {
      self.bytes = bytes
      let needed = FrameSealer.headroom + FramesBench.clear + bytes + FrameSealer.tailroom
      stride = (needed + 63) / 64 * 64
      count = max(2, min(256, 160_000 / stride))
    }

    /// Clear bytes and body of a frame.
    func frame(_ index: Int) -> Range<Int> {
      let start = index * stride + FrameSealer.headroom
      return start..<start + FramesBench.clear + bytes
    }

    func bytesOfSlab() -> [UInt8] {
      var slab = [UInt8](repeating: 0x5a, count: stride * count)
      for index in 0..<count { slab[frame(index).lowerBound] = 0x31 }
      return slab
    }
  }
}

/// The sealer and opener that a call uses: header, associated data, counter, limits, replay window.
struct OurFrames: ~Copyable {
  let shape: Slab.Shape
  var slab: [UInt8]
  var sealed: [Range<Int>]
  var sealer: FrameSealer
  var opener: FrameOpener

  init(_ suite: SFrameCipherSuite, _ shape: Slab.Shape) {
    let base = [UInt8](repeating: 7, count: 32)
    let keyID = CallKeyID(context: 0xab_cdef_0123, keyIdentifier: 0x45_6789).rawValue
    do {
      sealer = try FrameSealer(suite: suite, keyID: keyID, baseKey: base.span, source: .camera, codec: .vp8)
      opener = try FrameOpener(suite: suite, keyID: keyID, baseKey: base.span, source: .camera, codec: .vp8)
    } catch {
      fatalError("OpenSSL refuses \(suite): \(error)")
    }
    self.shape = shape
    slab = shape.bytesOfSlab()
    sealed = [Range<Int>](repeating: 0..<0, count: shape.count)
  }

  /// Header, source and clear bytes of the next frame.
  var aadByteCount: Int {
    SFrameHeader(keyID: sealer.keyID, counter: sealer.nextCounter).byteCount + 1 + FramesBench.clear
  }

  /// Seals the slab, then opens it.
  mutating func turn() -> Times {
    Self.turn(shape, slab: &slab, sealed: &sealed, sealer: &sealer, opener: &opener)
  }

  private static func turn(
    _ shape: Slab.Shape, slab: inout [UInt8], sealed: inout [Range<Int>], sealer: inout FrameSealer,
    opener: inout FrameOpener
  ) -> Times {
    var times = Times()
    var span = slab.mutableSpan
    do {
      var mallocs = palbe_malloc_count()
      var began = nanoseconds()
      for index in 0..<shape.count {
        sealed[index] = try sealer.seal(in: &span, frame: shape.frame(index))
      }
      times.seal = nanoseconds() - began
      times.sealMallocs = palbe_malloc_count() - mallocs
      mallocs = palbe_malloc_count()
      began = nanoseconds()
      for index in 0..<shape.count {
        sealed[index] = try opener.open(in: &span, frame: sealed[index])
      }
      times.open = nanoseconds() - began
      times.openMallocs = palbe_malloc_count() - mallocs
    } catch {
      fatalError("a frame was refused: \(error)")
    }
    precondition(sealed[shape.count - 1] == shape.frame(shape.count - 1), "an opened frame lies elsewhere")
    return times
  }
}
