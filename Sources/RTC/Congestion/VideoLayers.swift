import PalbeUnits

/// A layer of a video: which of its pictures' sizes, and which part of its frames.
public struct VideoLayer: Hashable, Comparable, Sendable, BitwiseCopyable {
  /// The size, from 0, the smallest.
  public var spatial: UInt8
  /// The part of the frames, from 0, the fewest; it contains all below.
  public var temporal: UInt8

  /// From its fields.
  public init(spatial: UInt8, temporal: UInt8) {
    self.spatial = spatial
    self.temporal = temporal
  }

  /// Everything there is.
  public static let highest = VideoLayer(spatial: .max, temporal: .max)

  @inlinable public static func < (left: VideoLayer, right: VideoLayer) -> Bool {
    (left.spatial, left.temporal) < (right.spatial, right.temporal)
  }
}

/// What each layer of a video costs: the rate of everything that is forwarded for it, lower temporal layers included.
public struct LayerRates: Sendable, BitwiseCopyable {
  /// Spatial layers.
  public static let spatialCount = 3
  /// Temporal layers of each.
  public static let temporalCount = 4

  private var rates = InlineArray<12, Int64>(repeating: 0)

  /// Nothing is sent.
  public init() {}

  /// The rate of a layer; zero: it is not sent. Layers beyond 3 × 4 do not exist.
  public subscript(spatial: Int, temporal: Int) -> DataRate {
    get {
      guard let index = Self.index(spatial, temporal) else { return .zero }
      return DataRate(bitsPerSecond: rates[index])
    }
    set {
      guard let index = Self.index(spatial, temporal) else { return }
      rates[index] = min(max(newValue.bitsPerSecond, 0), 10_000_000_000)
    }
  }

  private static func index(_ spatial: Int, _ temporal: Int) -> Int? {
    guard (0..<spatialCount).contains(spatial), (0..<temporalCount).contains(temporal) else { return nil }
    return spatial * temporalCount + temporal
  }
}

/// The layers of a video that are worth choosing, each dearer than the one before.
///
/// Of the smallest size every temporal layer counts; of a larger one only the two highest: nobody wants more pixels at a
/// quarter of the frames.
struct LayerLadder: Sendable, BitwiseCopyable {
  struct Step: BitwiseCopyable {
    var layer: VideoLayer
    var rate: Int64
  }

  private(set) var count = 0
  private var steps = InlineArray<12, Step>(
    repeating: Step(layer: VideoLayer(spatial: 0, temporal: 0), rate: 0))

  init() {}

  init(_ rates: LayerRates, maximum: VideoLayer) {
    for spatial in 0..<LayerRates.spatialCount where spatial <= Int(maximum.spatial) || count == 0 {
      // Where only a larger size than wanted is sent, that one is better than nothing.
      var top = -1
      for temporal in 0..<LayerRates.temporalCount where rates[spatial, temporal] > .zero { top = temporal }
      guard top >= 0 else { continue }
      let highest = min(top, Int(maximum.temporal))
      for temporal in 0...highest where spatial == 0 || count == 0 || temporal >= highest - 1 {
        let rate = rates[spatial, temporal].bitsPerSecond
        guard rate > 0 else { continue }
        if count > 0, rate <= steps[count - 1].rate {
          // A better picture that costs no more stands for all that cost as much.
          guard spatial > 0, temporal == highest else { continue }
          while count > 0, rate <= steps[count - 1].rate { count -= 1 }
        }
        let layer = VideoLayer(spatial: UInt8(spatial), temporal: UInt8(temporal))
        steps[count] = Step(layer: layer, rate: rate)
        count += 1
      }
    }
  }

  subscript(index: Int) -> Step { steps[index] }

  /// The rate of a step; zero below the first.
  func rate(_ index: Int) -> Int64 { index < 0 ? 0 : steps[index].rate }

  /// The highest step that is not above a layer; the first one if all are.
  func index(notAbove layer: VideoLayer) -> Int {
    var index = 0
    while index + 1 < count, !(layer < steps[index + 1].layer) { index += 1 }
    return count > 0 ? index : -1
  }
}
