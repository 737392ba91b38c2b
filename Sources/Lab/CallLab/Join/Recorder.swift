import Foundation
import PalbeCall
import PalbeCallCore
import PalbeMediaFiles
import PalbeUnits
import Synchronization

/// Writes what each participant sends into files of a folder: `ada_phone-audio.wav`, `ada_phone-video.y4m`.
final class Recorder: Sendable {
  private enum Sink {
    case audio(WAVAudioSink)
    case video(Y4MVideoSink)
  }

  private struct State {
    var names: [RemoteTrackID: String] = [:]
    var used: Set<String> = []
    var sinks: [RemoteTrackID: Sink] = [:]
    var failure: MediaFileError?
  }

  private let folder: String
  private let framesPerSecond: Int
  private let state = Mutex(State())

  /// Makes the folder. Throws when it cannot be made or written to.
  init(folder: String, framesPerSecond: Int) throws(JoinFailure) {
    self.folder = folder
    self.framesPerSecond = framesPerSecond
    do {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    } catch { throw JoinFailure("cannot make the folder \(folder) to record into") }
    guard FileManager.default.isWritableFile(atPath: folder) else {
      throw JoinFailure("cannot write to the folder \(folder)")
    }
  }

  /// A track begins; its file is made with its first sound or picture.
  func trackSubscribed(_ track: RemoteTrackID, identity: String, kind: MediaKind) {
    let letters = identity.unicodeScalars.map { scalar -> Character in
      let isPlain = scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
      return isPlain || scalar == "-" || scalar == "." ? Character(scalar) : "_"
    }
    // A name that starts with a dot would be hidden, or leave the folder.
    let plain = String(String(letters).drop { $0 == "." }.prefix(100))
    let base = "\(plain)-\(kind == .audio ? "audio" : "video")"
    state.withLock { state in
      var name = base
      var number = 2
      while state.used.contains(name) {
        name = "\(base)-\(number)"
        number += 1
      }
      state.used.insert(name)
      state.names[track] = name
    }
  }

  /// Writes 20 ms of a track.
  func play(_ track: RemoteTrackID, _ samples: [Int16]) {
    let sink = state.withLock { state -> WAVAudioSink? in
      if case .audio(let sink) = state.sinks[track] { return sink }
      guard let name = state.names[track], state.failure == nil else { return nil }
      do throws(MediaFileError) {
        let sink = try WAVAudioSink(path: "\(folder)/\(name).wav")
        state.sinks[track] = .audio(sink)
        return sink
      } catch {
        state.failure = error
        return nil
      }
    }
    sink?.write(samples.span)
  }

  /// Writes a picture of a track.
  func show(_ track: RemoteTrackID, _ picture: borrowing I420Image) {
    let sink = state.withLock { state -> Y4MVideoSink? in
      if case .video(let sink) = state.sinks[track] { return sink }
      guard let name = state.names[track] else { return nil }
      let sink = Y4MVideoSink(path: "\(folder)/\(name).y4m", framesPerSecond: framesPerSecond)
      state.sinks[track] = .video(sink)
      return sink
    }
    sink?.write(picture)
  }

  /// Completes the files.
  /// - Returns: their names, in order, and the first failure as a line for a person.
  func finish() -> (files: [String], failure: String?) {
    let (sinks, names, first) = state.withLock { ($0.sinks, $0.names, $0.failure) }
    var failure = first
    var files: [String] = []
    for (track, sink) in sinks {
      do throws(MediaFileError) {
        switch sink {
        case .audio(let sink): try sink.finish()
        case .video(let sink): try sink.finish()
        }
      } catch { failure = failure ?? error }
      if let name = names[track] {
        if case .audio = sink { files.append("\(name).wav") } else { files.append("\(name).y4m") }
      }
    }
    return (files.sorted(), failure.map { "\($0)" })
  }
}
