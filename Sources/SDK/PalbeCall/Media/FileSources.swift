package import PalbeMediaFiles
package import PalbeUnits
import Synchronization

/// Plays a WAV file in a loop. A disk that fails during the call gives silence.
package final class WAVAudioSource: AudioSource {
  private let reader: Mutex<MonoWAVReader>

  /// Throws when the file is missing or malformed; the error's description is one line for the person who
  /// named it.
  package init(path: String) throws(MediaFileError) { reader = Mutex(try MonoWAVReader(path: path)) }

  package func next(into frame: inout [Int16]) {
    reader.withLock { reader in
      do throws(MediaFileError) {
        try reader.read(into: &frame)
      } catch {
        for index in frame.indices { frame[index] = 0 }
      }
    }
  }
}

/// Plays a Y4M file in a loop, at its own speed: pictures are repeated or left out when the call's rate is
/// another. A disk that fails during the call gives no more pictures.
package final class Y4MVideoSource: VideoSource {
  package let width: Int
  package let height: Int
  // Pictures of the file for each of the call's, as a fraction.
  private let numerator: Int
  private let denominator: Int
  private let pictureCount: Int
  private let state: Mutex<State>

  private struct State: ~Copyable {
    var reader: Y4MReader
    // Pictures of the file passed so far, loops included.
    var passed = 0
    var current: I420Image
  }

  /// - Parameters:
  ///   - path: throws when that file is missing or malformed; the error's description is one line for the
  ///     person who named it.
  ///   - framesPerSecond: how many pictures a second the call will ask for.
  package init(path: String, framesPerSecond: Int) throws(MediaFileError) {
    let reader = try Y4MReader(path: path)
    (width, height) = (reader.header.width, reader.header.height)
    let rate = reader.header.rate
    (numerator, denominator) = (rate.numerator, rate.denominator * framesPerSecond)
    pictureCount = reader.pictureCount
    let current = I420Image(width: reader.header.width, height: reader.header.height)
    state = Mutex(State(reader: reader, current: current))
  }

  package func next(frameIndex: Int, into picture: inout I420Image) -> Bool {
    let wanted = frameIndex * numerator / denominator
    let pictureCount = pictureCount
    return state.withLock { state in
      do throws(MediaFileError) {
        // Whole loops that were left out need not be read.
        state.passed = max(
          state.passed, wanted - wanted % pictureCount - pictureCount + state.passed % pictureCount)
        while state.passed < wanted {
          if state.reader.index == pictureCount { try state.reader.rewind() }
          guard try state.reader.skip() else { return false }
          state.passed += 1
        }
        if state.passed == wanted {
          if state.reader.index == pictureCount { try state.reader.rewind() }
          guard try state.reader.read(into: &state.current) else { return false }
          state.passed += 1
        }
        picture = state.current
        return true
      } catch {
        return false
      }
    }
  }
}

/// Records a call's sound into a WAV file, complete once `finish` was called.
package final class WAVAudioSink: AudioSink {
  private let state: Mutex<State>

  private struct State: ~Copyable {
    var writer: WAVWriter?
    // The first; nothing is written after it.
    var failure: MediaFileError?
  }

  /// Throws when the file cannot be made.
  package init(path: String) throws(MediaFileError) {
    state = Mutex(State(writer: try WAVWriter(path: path)))
  }

  /// After a failure of the disk nothing more is written, and `finish` throws that failure.
  package func write(_ samples: Span<Int16>) {
    state.withLock { state in
      do throws(MediaFileError) {
        try state.writer?.write(samples)
      } catch {
        state.failure = error
        state.writer = nil
      }
    }
  }

  /// Completes the header; later samples are ignored. Throws the first failure of the recording.
  package func finish() throws(MediaFileError) {
    try state.withLock { state throws(MediaFileError) in
      if let failure = state.failure { throw failure }
      guard let last = state.writer.take() else { return }
      do throws(MediaFileError) { try last.finish() } catch {
        state.failure = error
        throw error
      }
    }
  }
}

/// Records a call's pictures into a Y4M file, which has one size and one rate: the first picture sets the
/// size, pictures of another size are left out.
package final class Y4MVideoSink: VideoSink {
  private let path: String
  private let framesPerSecond: Int
  private let state: Mutex<State>

  private struct State: ~Copyable {
    var writer: Y4MWriter?
    // The first picture's.
    var header: Y4MHeader?
    var isOpen = true
    var refused = 0
    // The first; nothing is written after it.
    var failure: MediaFileError?
  }

  /// Makes the file when the first picture comes.
  package init(path: String, framesPerSecond: Int) {
    self.path = path
    self.framesPerSecond = framesPerSecond
    state = Mutex(State())
  }

  /// Pictures that were left out: of another size than the first, or after a failure of the disk.
  package var refused: Int { state.withLock { $0.refused } }

  /// After a failure of the disk nothing more is written, and `finish` throws that failure.
  package func write(_ picture: borrowing I420Image) {
    let header = Y4MHeader(width: picture.width, height: picture.height, framesPerSecond: framesPerSecond)
    state.withLock { state in
      guard state.isOpen else { return }
      do throws(MediaFileError) {
        if state.header == nil {
          state.header = header
          state.writer = try Y4MWriter(path: path, header: header)
        }
        guard state.failure == nil, state.header == header else {
          state.refused += 1
          return
        }
        try state.writer?.write(picture)
      } catch {
        state.refused += 1
        state.failure = error
        state.writer = nil
      }
    }
  }

  /// Writes out what is still in memory; later pictures are ignored. Throws the first failure of the recording.
  package func finish() throws(MediaFileError) {
    try state.withLock { state throws(MediaFileError) in
      state.isOpen = false
      if let failure = state.failure { throw failure }
      guard let last = state.writer.take() else { return }
      do throws(MediaFileError) { try last.finish() } catch {
        state.failure = error
        throw error
      }
    }
  }
}
