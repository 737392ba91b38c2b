import PalbeUnits

/// What the delay of the last packets says of the link.
public enum LinkUsage: Sendable, Hashable {
  /// The queue keeps its length.
  case normal
  /// The queue grows: more is sent than the link carries.
  case over
  /// The queue drains.
  case under
}

/// The slope of the queueing delay by linear regression, compared with a threshold that follows the noise
/// (draft-ietf-rmcat-gcc-02 §5.3 to §5.5; the regression in the place of the draft's Kalman filter is what
/// later implementations use). Between two bursts of noise the threshold falls faster than it rose, so where packets
/// jitter it never gets below what jitter alone makes of the slope.
struct TrendDetector: Sendable {
  /// Points of the regression.
  private static let window = 20
  private static let smoothing = 0.9
  private static let gain = 4.0
  /// The slope's weight grows with the number of distances seen, up to this.
  private static let countLimit = 60.0
  private static let thresholdRange = 6.0...600.0
  private static let thresholdStart = 12.5
  /// What a millisecond of jitter makes of the value: over links of up to 100 ms of jitter without a queue one value in a
  /// thousand exceeds 0.72.
  private static let valueOfJitter = 1.0
  /// A queue that grows by an eighth of the time is seen through any jitter: on a slow link the packets of a picture wait for
  /// each other, which looks like jitter.
  private static let longestFloor = 30.0
  private static let gainUp = 0.0087
  private static let gainDown = 0.039
  /// A value so far beyond the threshold is a spike, which the threshold does not follow.
  private static let spike = 15.0
  /// How long the slope must stay above the threshold, in milliseconds.
  private static let overTime = 10.0

  private(set) var usage = LinkUsage.normal
  private var times = [Double](repeating: 0, count: Self.window)
  private var delays = [Double](repeating: 0, count: Self.window)
  private var filled = 0
  private var slot = 0
  private var distances = 0.0
  private var accumulated = 0.0
  private var smoothed = 0.0
  private var origin: Instant?
  private(set) var threshold = Self.thresholdStart
  private var lastUpdate: Instant?
  private var timeOver = -1.0
  private var timesOver = 0
  private var previousSlope = 0.0
  /// What was last compared with the threshold.
  private(set) var value = 0.0

  /// Takes the distance of two groups.
  ///
  /// - Parameter jitter: of the packets' delay, in milliseconds.
  mutating func update(_ step: PacketGroups.Step, jitter: Double) {
    let origin = self.origin ?? step.arrival
    self.origin = origin
    distances = min(distances + 1, Self.countLimit)
    accumulated += (step.arrived - step.sent).inMilliseconds
    smoothed = Self.smoothing * smoothed + (1 - Self.smoothing) * accumulated
    times[slot] = (step.arrival - origin).inMilliseconds
    delays[slot] = smoothed
    slot = (slot + 1) % Self.window
    filled = min(filled + 1, Self.window)
    let slope = filled == Self.window ? self.slope() ?? previousSlope : 0
    threshold = max(threshold, min(Self.valueOfJitter * jitter, Self.longestFloor))
    detect(slope, sent: step.sent.inMilliseconds, at: step.arrival)
  }

  /// Starts again, as after a pause.
  mutating func reset() {
    // The arrays keep their storage; everything else is as new.
    filled = 0
    slot = 0
    distances = 0
    accumulated = 0
    smoothed = 0
    origin = nil
    lastUpdate = nil
    timeOver = -1
    timesOver = 0
    previousSlope = 0
    value = 0
    usage = .normal
  }

  private func slope() -> Double? {
    var meanTime = 0.0
    var meanDelay = 0.0
    for index in 0..<Self.window {
      meanTime += times[index]
      meanDelay += delays[index]
    }
    meanTime /= Double(Self.window)
    meanDelay /= Double(Self.window)
    var covariance = 0.0
    var variance = 0.0
    for index in 0..<Self.window {
      let time = times[index] - meanTime
      covariance += time * (delays[index] - meanDelay)
      variance += time * time
    }
    return variance > 0 ? covariance / variance : nil
  }

  private mutating func detect(_ slope: Double, sent: Double, at now: Instant) {
    value = distances * slope * Self.gain
    if value > threshold {
      timeOver = timeOver < 0 ? sent / 2 : timeOver + sent
      timesOver += 1
      if timeOver > Self.overTime, timesOver > 1, slope >= previousSlope {
        timeOver = 0
        timesOver = 0
        usage = .over
      }
    } else {
      timeOver = -1
      timesOver = 0
      usage = value < -threshold ? .under : .normal
    }
    previousSlope = slope
    adapt(value.magnitude, at: now)
  }

  /// Lets the threshold follow the noise, so that neither jitter nor a competing TCP flow starves us.
  private mutating func adapt(_ value: Double, at now: Instant) {
    defer { lastUpdate = now }
    guard let lastUpdate, value <= threshold + Self.spike else { return }
    let gain = value < threshold ? Self.gainDown : Self.gainUp
    let elapsed = min(max((now - lastUpdate).inMilliseconds, 0), 100)
    threshold += gain * (value - threshold) * elapsed
    threshold = min(max(threshold, Self.thresholdRange.lowerBound), Self.thresholdRange.upperBound)
  }
}
