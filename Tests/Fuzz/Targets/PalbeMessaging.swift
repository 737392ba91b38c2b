import Foundation
import PalbeWire

@testable import PalbeMessaging

extension FuzzTarget {
  /// Any bytes as a picture of the user's: no crash, bounded, and what comes out is a picture again, upright.
  static let imageThumbnail = FuzzTarget(name: "image-thumbnail") { bytes in
    guard let thumbnail = Thumbnail(bytes) else { return }
    demand(thumbnail.jpeg.count <= 32 << 10, "a thumbnail that is too long")
    demand(thumbnail.width > 0 && thumbnail.height > 0, "a picture of nothing")
    guard let small = Pixels.decode([UInt8](thumbnail.jpeg)) else {
      return demand(false, "a thumbnail that cannot be read")
    }
    demand(max(small.width, small.height) <= Thumbnail.side, "a thumbnail that is too large")
    demand(Orientation(file: [UInt8](thumbnail.jpeg).span) == .upright, "metadata in a thumbnail")
  }

  /// Any bytes as a voice message: no crash, and bounded.
  static let voiceWaveform = FuzzTarget(name: "voice-waveform") { bytes in
    guard let peaks = Waveform.peaks(bytes.span) else { return }
    demand((1...Waveform.count).contains(peaks.count), "peaks without bounds")
  }
}
