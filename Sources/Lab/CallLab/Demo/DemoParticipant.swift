import PalbeCall
import PalbeCallCore
import PalbeFrameEncryption
import PalbeUnits
import Synchronization

/// Somebody in a demo's call: a whole client with its own sockets and threads, and a record of what it saw.
final class DemoParticipant: Sendable {
  /// What is sent as sound.
  enum Voice: Sendable {
    case tone(hertz: Double)
    case voice
  }

  /// What a participant is and does.
  struct Role: Sendable {
    /// For people.
    var name: String
    /// In the token.
    var identity: String
    /// Nil for somebody who only listens.
    var voice: Voice?
    /// Where its pictures' numbers begin.
    var numberBase: UInt32 = 0
  }

  /// What the session reported.
  private final class Events: Sendable {
    struct State {
      var tracks: [(identity: String, isEncrypted: Bool)] = []
      var ended: CallEndReason?
    }
    let state = Mutex(State())
  }

  let role: Role
  let sent: SentRecord
  let received: ReceivedRecord
  private let engine: CallEngine
  private let events: Events

  /// - Parameters:
  ///   - seconds: how long the call is meant to last, for what is kept of it.
  ///   - key: the call key to begin with; nil for a call without end-to-end encryption.
  init(_ role: Role, edgeURL: String, token: String, key: [UInt8]?, seconds: Int) {
    let sent = SentRecord(numberBase: role.numberBase)
    let received = ReceivedRecord(seconds: seconds)
    let events = Events()
    var configuration = CallEngine.Configuration(
      edgeURL: edgeURL, token: token, encryption: key == nil ? .none : .sframe)
    configuration.firstKey = key
    switch role.voice {
    case .tone(let hertz): configuration.audioSource = ToneSignal(frequency: hertz)
    case .voice: configuration.audioSource = VoiceSignal()
    case nil: break
    }
    if role.voice != nil { configuration.videoSource = NumberedCard(base: role.numberBase) }
    self.role = role
    self.sent = sent
    self.received = received
    self.events = events
    engine = CallEngine(configuration, hooks: Self.hooks(sent, received, events))
  }

  private static func hooks(
    _ sent: SentRecord, _ received: ReceivedRecord, _ events: Events
  ) -> CallEngine.Hooks {
    var hooks = CallEngine.Hooks()
    hooks.onEvent = { event in
      events.state.withLock { state in
        switch event {
        case .connected: sent.beginLogging()
        case .trackSubscribed(_, let identity, _, let isEncrypted):
          state.tracks.append((identity, isEncrypted))
        case .disconnected(let reason): state.ended = reason
        default: break
        }
      }
    }
    hooks.onEncodedFrame = { track, bytes, _ in sent.encoded(track, bytes) }
    hooks.onCapturedVideo = { index, time in sent.captured(index, at: time) }
    hooks.onDecodedVideo = { _, picture, time in received.decoded(picture, at: time) }
    hooks.onPlayedAudio = { _, samples, _, time in received.played(samples, at: time) }
    return hooks
  }

  /// Joins the room; returns when media flows.
  func start() async throws { try await engine.start() }

  /// Leaves; returns when every thread has ended. Safe to call more than once.
  func stop() async { await engine.stop() }

  /// A key of the group's next epoch: readable at once, sent under when `confirmKey` says so.
  func installKey(_ key: [UInt8]) async throws { try await engine.installKey(key, sending: .whenConfirmed) }

  /// Everybody has the newest key.
  func confirmKey() async { await engine.confirmSendKey() }

  /// The counters now. Throws `Trouble` when the call never began.
  func statistics() async throws -> CallStatistics {
    guard let statistics = await engine.statistics() else {
      throw DemoRun.Trouble(description: "\(role.name) has no counters")
    }
    return statistics
  }

  /// Tracks of `identity` are being received, and all of them are announced as encrypted.
  func isEncrypted(from identity: String) -> Bool {
    let tracks = events.state.withLock { $0.tracks }.filter { $0.identity == identity }
    return !tracks.isEmpty && tracks.allSatisfy(\.isEncrypted)
  }

  /// Why the call ended, in words; nil while it goes on.
  var ended: String? { events.state.withLock { $0.ended }.map(CallEngineError.words) }
}
