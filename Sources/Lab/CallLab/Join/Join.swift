import Foundation
import PalbeCall
import PalbeCallCore
import PalbeEventLoop
import PalbeFrameEncryption
import PalbeMediaFiles
import PalbeUnits
import PalbeWire

/// A misuse or a refusal; its description is one line for a person.
struct JoinFailure: Error, CustomStringConvertible {
  var description: String
  init(_ description: String) { self.description = description }
}

/// The body of `palbe-call join`.
public enum Join {
  private enum End: Sendable {
    case time
    case interrupted
    case ended(CallEndReason)
  }

  private static let framesPerSecond = 30

  /// Joins a room, sends and receives until the time is over, a signal comes or the call ends, and prints a table.
  ///
  /// - Parameter signals: SIGINT and SIGTERM, watched since the program began; they leave the call.
  /// - Returns: 0 after a call that was left; 1 when it ended by itself or the recording failed; 2 after one line on standard
  ///   error when there was no call: files, token or server were refused.
  public static func run(_ options: JoinOptions, signals: SignalWatch) async -> Int32 {
    do throws(JoinFailure) {
      return try await call(options, signals)
    } catch {
      complain("palbe-call: \(error)")
      return 2
    }
  }

  private static func call(_ options: JoinOptions, _ signals: SignalWatch) async throws(JoinFailure) -> Int32
  {
    let configuration = try configuration(for: options)
    var recorder: Recorder?
    if let folder = options.recordPath {
      recorder = try Recorder(folder: folder, framesPerSecond: framesPerSecond)
    }
    let summary = JoinSummary()
    let end = Latch<End>()
    let engine = CallEngine(configuration, hooks: hooks(summary, recorder, end))

    watch(signals) {
      end.set(.interrupted)
      // Nobody waits for `end` before media flows.
      await engine.stop()
    }
    let began = MonotonicClock.now()
    do throws(CallEngineError) {
      try await engine.start()
    } catch {
      if case .interrupted = end.value { return 0 }
      throw JoinFailure("\(error)")
    }
    let connected = MonotonicClock.now()
    say("connected in \(String(format: "%.0f", (connected - began).inMilliseconds)) ms")
    if let seconds = options.seconds {
      Task {
        try? await Task.sleep(nanoseconds: UInt64(seconds) * 1_000_000_000)
        end.set(.time)
      }
    }
    let reason = await end.wait()
    await engine.stop()
    if let statistics = await engine.statistics() {
      say(summary.table(statistics, duration: MonotonicClock.now() - connected))
    }
    var code: Int32 = 0
    if let (files, failure) = recorder?.finish() {
      if !files.isEmpty { say("recorded: " + files.joined(separator: ", ")) }
      if let failure {
        complain("palbe-call: \(failure)")
        code = 1
      }
    }
    if !summary.refusedTracks.isEmpty {
      complain("palbe-call: the server did not take all tracks; see above")
      code = 1
    }
    if case .ended(let reason) = reason {
      complain("palbe-call: the call ended: \(CallEngineError.words(reason))")
      code = 1
    }
    return code
  }

  private static func configuration(
    for options: JoinOptions
  ) throws(JoinFailure) -> CallEngine.Configuration {
    var configuration = CallEngine.Configuration(
      edgeURL: options.url, token: options.token, encryption: options.key == nil ? .none : .sframe)
    configuration.firstKey = options.key
    if let passphrase = options.liveKit {
      configuration.encryption = .liveKit(LiveKitKeyRing.Configuration())
      configuration.liveKitKey = try passphrase.key()
    }
    configuration.framesPerSecond = framesPerSecond
    guard !options.listens else { return configuration }
    do throws(MediaFileError) {
      if let path = options.audioPath {
        configuration.audioSource = try WAVAudioSource(path: path)
      } else {
        configuration.audioSource = VoiceSignal()
      }
      if let path = options.videoPath {
        configuration.videoSource = try Y4MVideoSource(path: path, framesPerSecond: framesPerSecond)
      } else {
        configuration.videoSource = TestCard()
      }
    } catch { throw JoinFailure("\(error)") }
    return configuration
  }

  private static func hooks(
    _ summary: JoinSummary, _ recorder: Recorder?, _ end: Latch<End>
  ) -> CallEngine.Hooks {
    var hooks = CallEngine.Hooks()
    hooks.onEvent = { event in
      if case .trackSubscribed(let track, let identity, let kind, _) = event {
        recorder?.trackSubscribed(track, identity: identity, kind: kind)
      }
      if let line = summary.line(for: event) { say(line) }
      if case .disconnected(let reason) = event, reason != .left { end.set(.ended(reason)) }
    }
    hooks.onDecodedVideo = { track, picture, _ in
      summary.pictureDecoded(track)
      recorder?.show(track, picture)
    }
    hooks.onPlayedAudio = { track, samples, _, _ in recorder?.play(track, samples) }
    return hooks
  }

  /// Runs `body` at the first signal.
  private static func watch(_ signals: SignalWatch, _ body: @escaping @Sendable () async -> Void) {
    // The thread lives until the program ends; a signal after the first ends the program, which is what is wanted then.
    _ = try? WorkerThread(name: "signals") {
      _ = signals.wait()
      Task { await body() }
      _ = signals.wait()
      exit(130)
    }
  }

  // A reader that went away or a full disk must not end the call.
  private static func say(_ text: String) {
    try? FileHandle.standardOutput.write(contentsOf: Data((text + "\n").utf8))
  }

  private static func complain(_ text: String) {
    try? FileHandle.standardError.write(contentsOf: Data((printable(text) + "\n").utf8))
  }
}
