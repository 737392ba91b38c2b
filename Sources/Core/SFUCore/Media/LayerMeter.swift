import PalbeRTP
import PalbeUnits

/// What each layer of a source takes, over a few seconds.
struct LayerMeter {
  private static let window = TimeDelta.milliseconds(500)
  /// After a pause what was before says nothing.
  private static let longestWindow = TimeDelta.seconds(3)
  private static let parts = 4
  private static let sizes = 3
  /// Frames that larger sizes need too lie in the first half, those that they do not in the second one.
  private static let half = parts * sizes

  private var bytes = InlineArray<24, Int>(repeating: 0)
  private var rates = InlineArray<24, Double>(repeating: 0)
  /// Frames of each part.
  private var frames = InlineArray<4, Int>(repeating: 0)
  private var frameRates = InlineArray<4, Double>(repeating: 0)
  private var start: Instant?
  /// Windows measured.
  private var count = 0

  /// Takes note of a packet of a part of the frames, 0 to 3, of the only size.
  mutating func note(byteCount: Int, layer: UInt8, at now: Instant) {
    if start == nil { start = now }
    bytes[Int(layer & 3)] += byteCount
  }

  /// Takes note of a packet of a stream with layers.
  mutating func note(byteCount: Int, _ layers: FrameLayers, at now: Instant) {
    if start == nil { start = now }
    let index = Self.parts * min(Int(layers.spatial), Self.sizes - 1) + Int(layers.temporal & 3)
    bytes[layers.needed.reaches(above: layers.spatial) ? index : index + Self.half] += byteCount
  }

  /// Takes note of a frame of a part; of several sizes, of the smallest one.
  mutating func noteFrame(layer: UInt8) { frames[Int(layer & 3)] += 1 }

  /// The lowest part that comes with so many frames a second, with those below it; the highest while nothing is known.
  ///
  /// - Parameter current: the one in use, which goes on while it has nearly as many.
  func part(for frameRate: UInt32, current: UInt8) -> UInt8 {
    var sum = 0.0
    for part in 0..<Self.parts - 1 {
      sum += frameRates[part]
      if sum >= (part < current ? 0.9 : 0.8) * Double(frameRate) { return UInt8(part) }
    }
    return .max
  }

  /// The rate of a layer with all that it needs; zero before it is known or for a layer that does not exist.
  func rate(_ part: Int, size: Int = 0) -> DataRate {
    let index = Self.parts * size + part
    guard count > 0, rates[index] + rates[index + Self.half] > 0 else { return .zero }
    var sum = 0.0
    for lower in 0...part {
      sum += rates[Self.parts * size + lower + Self.half]
      for smaller in 0...size { sum += rates[Self.parts * smaller + lower] }
    }
    return DataRate(bitsPerSecond: Int64(sum))
  }

  /// Ends a window that is over.
  mutating func update(at now: Instant) {
    guard let start, now - start >= Self.window else { return }
    let elapsed = now - start
    // The first windows count fully: a source begins with little.
    let weight = count < 4 || elapsed > Self.longestWindow ? 1 / Double(min(count, 2) + 1) : 0.25
    for index in 0..<2 * Self.half {
      let rate = Double(bytes[index] * 8) / elapsed.inSeconds
      let smoothed = rates[index] + weight * (rate - rates[index])
      // What has not come for long is gone, not small.
      rates[index] = bytes[index] == 0 && smoothed < 1_000 ? 0 : smoothed
      bytes[index] = 0
    }
    for part in 0..<Self.parts {
      frameRates[part] += weight * (Double(frames[part]) / elapsed.inSeconds - frameRates[part])
      frames[part] = 0
    }
    self.start = now
    count += 1
  }
}
