import PalbeUnits

/// The rate at which packets arrived during the last moments, by the receiver's clock.
///
/// Bytes are counted in buckets of 10 ms. The rate covers at least `shortest` and, at low packet rates, up to a second,
/// until it stands on `packetCount` packets.
struct DeliveryRate: Sendable {
  private static let bucket = TimeDelta.milliseconds(10)
  private static let bucketCount = 128
  private static let shortest = 30
  private static let longest = 100
  private static let packetCount = 20

  private var bytes = [UInt32](repeating: 0, count: Self.bucketCount)
  private var packets = [UInt16](repeating: 0, count: Self.bucketCount)
  /// The newest bucket, counted from the clock's origin.
  private var newest: Int64?
  /// The first bucket that holds anything since the last pause.
  private var oldest: Int64 = 0
  private(set) var lastArrival = Instant.zero

  /// Takes a packet in.
  mutating func add(byteCount: Int, at arrival: Instant) {
    let number = floorDivide(arrival.nanoseconds, Self.bucket.nanoseconds)
    let count = Int64(Self.bucketCount)
    guard let newest, number - newest < count else {
      for index in 0..<Self.bucketCount {
        bytes[index] = 0
        packets[index] = 0
      }
      self.newest = number
      oldest = number
      lastArrival = arrival
      put(byteCount, into: number)
      return
    }
    guard newest - number < count, number >= oldest else { return }
    var step = newest
    while step < number {
      step += 1
      let index = slot(step)
      bytes[index] = 0
      packets[index] = 0
    }
    self.newest = step
    lastArrival = max(lastArrival, arrival)
    put(byteCount, into: number)
  }

  /// Bits per second; nil until enough has arrived.
  var bitsPerSecond: Double? {
    guard let newest else { return nil }
    var sum = 0.0
    var count = 0
    var length = 0
    while length < Self.longest, newest - Int64(length) >= oldest {
      let index = slot(newest - Int64(length))
      sum += Double(bytes[index])
      count += Int(packets[index])
      length += 1
      if length >= Self.shortest, count >= Self.packetCount { break }
    }
    guard length >= Self.shortest, count >= 3 else { return nil }
    let start = (newest - Int64(length) + 1) * Self.bucket.nanoseconds
    let seconds = (lastArrival - Instant(nanoseconds: start)).inSeconds
    guard seconds > 0 else { return nil }
    // The window ends with a packet: on average half a packet too many lies in it.
    return sum * (1 - 0.5 / Double(count)) * 8 / seconds
  }

  /// Starts again.
  mutating func reset() { newest = nil }

  private mutating func put(_ byteCount: Int, into number: Int64) {
    let index = slot(number)
    bytes[index] = UInt32(clamping: Int64(bytes[index]) + Int64(max(0, byteCount)))
    packets[index] = UInt16(clamping: Int(packets[index]) + 1)
  }

  private func slot(_ number: Int64) -> Int {
    let rest = number % Int64(Self.bucketCount)
    return Int(rest < 0 ? rest + Int64(Self.bucketCount) : rest)
  }

  private func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
    let quotient = value / divisor
    return value % divisor < 0 ? quotient - 1 : quotient
  }
}
