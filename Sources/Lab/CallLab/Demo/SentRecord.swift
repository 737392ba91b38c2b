import PalbeCall
import PalbeCallCore
import PalbeUnits
import Synchronization

/// What one participant captured and encoded: the source of every comparison.
final class SentRecord: Sendable {
  /// Bytes of encoded frames that are kept; a longer call is searched for its first part only.
  static let byteLimit = 64 << 20

  /// An encoded frame before it was sealed.
  struct EncodedFrame: Sendable {
    var track: LocalTrack
    var bytes: [UInt8]

    /// What must stay secret: the frame past its clear bytes (10 of a VP8 key frame, 3 of another, 1 of Opus).
    var secret: ArraySlice<UInt8> {
      switch track {
      case .microphone: bytes.dropFirst(1)
      case .camera: bytes.dropFirst((bytes.first ?? 0) & 1 == 0 ? 10 : 3)
      }
    }
  }

  private struct State {
    var captures: [Capture] = []
    var frames: [EncodedFrame] = []
    var byteCount = 0
    var isLogging = false
  }

  /// Added to the picture's index, so that the participants' pictures have different numbers.
  let numberBase: UInt32
  private let state = Mutex(State())

  init(numberBase: UInt32) { self.numberBase = numberBase }

  /// Picture `frameIndex` of the source was captured.
  func captured(_ frameIndex: Int, at time: Instant) {
    let number = numberBase &+ UInt32(truncatingIfNeeded: frameIndex)
    state.withLock { $0.captures.append(Capture(number: number, time: time)) }
  }

  /// From now on encoded frames are sent, and logged; before that they go nowhere.
  func beginLogging() { state.withLock { $0.isLogging = true } }

  /// Frames encoded from now on may not reach the server before the call ends.
  func endLogging() { state.withLock { $0.isLogging = false } }

  /// A frame was encoded and is about to be sealed.
  func encoded(_ track: LocalTrack, _ bytes: [UInt8]) {
    state.withLock { state in
      guard state.isLogging, state.byteCount + bytes.count <= Self.byteLimit else { return }
      state.byteCount += bytes.count
      state.frames.append(EncodedFrame(track: track, bytes: bytes))
    }
  }

  var captures: [Capture] { state.withLock { $0.captures } }
  var frames: [EncodedFrame] { state.withLock { $0.frames } }
}

/// Test card pictures whose numbers begin at a base.
struct NumberedCard: VideoSource {
  private var card = TestCard()
  let base: Int

  init(base: UInt32) { self.base = Int(base) }

  var width: Int { card.width }
  var height: Int { card.height }

  mutating func next(frameIndex: Int, into picture: inout I420Image) -> Bool {
    card.next(frameIndex: base + frameIndex, into: &picture)
  }
}
