/// A data rate in bits per second.
public struct DataRate: Hashable, Comparable, Sendable, BitwiseCopyable {
  /// Bits per second.
  public var bitsPerSecond: Int64

  /// A rate in thousands of bits per second.
  @inlinable public init(bitsPerSecond: Int64) { self.bitsPerSecond = bitsPerSecond }
  @inlinable public static func kilobitsPerSecond(_ value: Int) -> DataRate {
    DataRate(bitsPerSecond: Int64(value) * 1_000)
  }
  /// A rate in millions of bits per second.
  @inlinable public static func megabitsPerSecond(_ value: Int) -> DataRate {
    DataRate(bitsPerSecond: Int64(value) * 1_000_000)
  }
  /// No data at all.
  public static let zero = DataRate(bitsPerSecond: 0)

  @inlinable public static func < (left: DataRate, right: DataRate) -> Bool {
    left.bitsPerSecond < right.bitsPerSecond
  }
}

/// An amount of data in bytes.
public struct DataSize: Hashable, Comparable, Sendable, BitwiseCopyable {
  /// Bytes.
  public var bytes: Int64

  @inlinable public init(bytes: Int64) { self.bytes = bytes }
  /// Nothing.
  public static let zero = DataSize(bytes: 0)

  @inlinable public static func < (left: DataSize, right: DataSize) -> Bool { left.bytes < right.bytes }
  @inlinable public static func + (left: DataSize, right: DataSize) -> DataSize {
    DataSize(bytes: left.bytes + right.bytes)
  }
  /// The rate that carries `size` in `time`; zero when `time` is not positive.
  @inlinable public static func / (size: DataSize, time: TimeDelta) -> DataRate {
    guard time > .zero else { return .zero }
    return DataRate(bitsPerSecond: Int64(Double(size.bytes) * 8 / time.inSeconds))
  }
}
