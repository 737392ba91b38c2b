package import PalbeUnits

/// Sound that a call sends: one channel at 48 kHz.
package protocol AudioSource: Sendable {
  /// Overwrites all of `frame` with the next samples; a call asks for 960 (20 ms) at a time.
  mutating func next(into frame: inout [Int16])
}

/// Pictures that a call sends, all of one size.
package protocol VideoSource: Sendable {
  /// Pixels in a row.
  var width: Int { get }
  /// Rows.
  var height: Int { get }
  /// Makes `picture` the picture number `frameIndex`, from 0 up; numbers never go back, and one that is left
  /// out was dropped. The memory of `picture` is used again when it has the right size. False when there is
  /// no picture.
  mutating func next(frameIndex: Int, into picture: inout I420Image) -> Bool
}

extension VideoSource {
  /// The picture number `frameIndex`, newly allocated; nil when there is none.
  package mutating func next(frameIndex: Int) -> I420Image? {
    var picture = I420Image(width: width, height: height)
    return next(frameIndex: frameIndex, into: &picture) ? picture : nil
  }
}

/// Takes the sound that a call receives: one channel at 48 kHz, without gaps (losses are concealed before).
package protocol AudioSink: Sendable {
  mutating func write(_ samples: Span<Int16>)
}

/// Takes the pictures that a call receives, in the order they are to be shown.
package protocol VideoSink: Sendable {
  mutating func write(_ picture: borrowing I420Image)
}
