import PalbeUnits
import Synchronization

/// What one participant decoded, heard and was told. The media threads write it; nothing here waits for anything.
final class ReceivedRecord: Sendable {
  /// A decoded picture that is compared with its source after the call.
  struct Sample: Sendable {
    var number: UInt32
    var picture: I420Image
  }

  private struct Video {
    var decodes: [Decode] = []
    var samples: [Sample] = []
  }

  private struct Audio {
    var heard: [Int16] = []
    var startedAt: Instant?
    var peak: Int32 = 0
  }

  /// Every so many pictures one is kept as a sample, and at most so many.
  private let sampleInterval: Int
  private let sampleLimit: Int
  /// Samples of sound that are kept: the latest.
  private let heardLimit: Int
  private let video = Mutex(Video())
  private let audio = Mutex(Audio())

  /// For a call of `seconds`, whose samples spread over all of it. A sample has 345,600 bytes.
  init(seconds: Int, sampleLimit: Int = 120) {
    self.sampleLimit = sampleLimit
    sampleInterval = max(3, (seconds + 5) * 30 / max(1, sampleLimit) + 1)
    heardLimit = 48_000 * min(seconds, 60)
  }

  /// A picture was decoded.
  func decoded(_ picture: I420Image, at time: Instant) {
    let number = TestCard.readNumber(in: picture)
    video.withLock { video in
      if let number, video.decodes.count % sampleInterval == 0, video.samples.count < sampleLimit {
        video.samples.append(Sample(number: number, picture: picture))
      }
      video.decodes.append(Decode(number: number, time: time))
    }
  }

  /// Sound is being played.
  func played(_ samples: [Int16], at time: Instant) {
    let peak = samples.reduce(Int32(0)) { max($0, abs(Int32($1))) }
    audio.withLock { audio in
      audio.peak = max(audio.peak, peak)
      guard peak > 0 || audio.startedAt != nil else { return }
      if audio.startedAt == nil { audio.startedAt = time }
      if audio.heard.count + samples.count <= heardLimit { audio.heard += samples }
    }
  }

  /// Decoded pictures, in the order they came.
  var decodes: [Decode] { video.withLock { $0.decodes } }
  var decodedCount: Int { video.withLock { $0.decodes.count } }
  /// When the first picture was there.
  var firstDecode: Instant? { video.withLock { $0.decodes.first?.time } }
  /// When the first sound was played.
  var firstSound: Instant? { audio.withLock { $0.startedAt } }
  /// Sound from the first that was not silence.
  var heard: [Int16] { audio.withLock { $0.heard } }
  /// The loudest sample so far, in dB below full scale.
  var peak: Double { Loudness.peak([Int16(clamping: audio.withLock { $0.peak })]) }

  /// The samples, which are given up: they are most of a call's memory.
  func takeSamples() -> [Sample] {
    video.withLock { video in
      let samples = video.samples
      video.samples = []
      return samples
    }
  }

  /// Similarity of each sample to the picture it was, rendered again.
  func measureSimilarity() -> [Double] {
    let card = TestCard()
    var source = I420Image(width: card.width, height: card.height)
    return takeSamples().compactMap { sample in
      card.render(sample.number, into: &source)
      return SSIM.luma(source, sample.picture)
    }
  }
}
