/// Layers of a video that one stream carries: of each of 8 sizes, 4 parts of the frames.
///
/// A layer's index is 4 · size + part, both from 0, the smallest and the fewest. A layer contains all smaller parts of its size.
public struct LayerSet: OptionSet, Hashable, Sendable, BitwiseCopyable {
  /// A bit for each index.
  public var rawValue: UInt32

  /// From its bits.
  @inlinable public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Every layer.
  public static let all = LayerSet(rawValue: .max)

  /// The index of a layer; beyond 8 × 4 it is the highest there.
  @inlinable public static func index(spatial: Int, temporal: Int) -> UInt8 {
    UInt8(truncatingIfNeeded: 4 * min(max(spatial, 0), 7) + min(max(temporal, 0), 3))
  }

  /// Whether the layer of that index, which is below 32, is in it.
  @inlinable public subscript(index: UInt8) -> Bool {
    get { rawValue & 1 << (index & 31) != 0 }
    set { if newValue { rawValue |= 1 << (index & 31) } else { rawValue &= ~(1 << (index & 31)) } }
  }

  /// The layers of sizes up to `count`.
  @inlinable public static func sizes(_ count: Int) -> LayerSet {
    count >= 8 ? .all : LayerSet(rawValue: 1 << UInt32(4 * max(count, 0)) - 1)
  }

  /// Sizes up to the largest one in it; zero when it is empty.
  @inlinable public var sizeCount: Int { (35 - rawValue.leadingZeroBitCount) / 4 }

  /// True when it has a layer of a larger size.
  @inlinable public func reaches(above spatial: UInt8) -> Bool {
    spatial < 7 && rawValue >> (4 * (UInt32(spatial) + 1)) != 0
  }

  /// The layer of the largest size up to a limit, and of that the largest part up to a limit; where all are above, the lowest.
  @inlinable public func best(spatial: Int, temporal: Int) -> UInt8 {
    guard rawValue != 0 else { return Self.index(spatial: spatial, temporal: temporal) }
    var size = min(max(spatial, 0), 7)
    while size >= 0 {
      let parts = rawValue >> UInt32(4 * size) & 0xf
      if parts != 0 {
        let fitting = parts & (2 << UInt32(min(max(temporal, 0), 3)) - 1)
        let part = fitting == 0 ? parts.trailingZeroBitCount : 31 - fitting.leadingZeroBitCount
        return Self.index(spatial: size, temporal: part)
      }
      size -= 1
    }
    return UInt8(truncatingIfNeeded: rawValue.trailingZeroBitCount)
  }
}
