import PalbeCall
import PalbeCallCore
import PalbeCallLab
import PalbeUnits
import Synchronization
import Testing

/// A participant with test signals, and what happened to it.
final class Party: Sendable {
  /// What was seen so far.
  struct Record {
    var events: [CallEvent] = []
    var pictures: [UInt32] = []
    var unreadablePictures = 0
    var played = 0
    var concealed = 0
    var encoded: [LocalTrack: Int] = [:]
    /// The RTP timestamps of our frames.
    var timestamps: [LocalTrack: [UInt32]] = [:]
  }

  private let record: Recording
  let engine: CallEngine

  init(
    _ identity: String, at url: String, room: String = "room", key: [UInt8]? = nil, isEncrypted: Bool = true,
    microphone: any AudioSource = VoiceSignal(), camera: any VideoSource = TestCard(),
    change: (inout CallEngine.Configuration) -> Void = { _ in }
  ) throws {
    var configuration = CallEngine.Configuration(
      edgeURL: url, token: try TestSFU.token(identity, room: room), encryption: isEncrypted ? .sframe : .none)
    configuration.firstKey = key
    configuration.audioSource = microphone
    configuration.videoSource = camera
    change(&configuration)
    let record = Recording()
    self.record = record
    engine = CallEngine(configuration, hooks: record.hooks)
  }

  var now: Record { record.state.withLock { $0.record } }

  /// Waits until what was seen fulfils `condition`; the test's time limit ends a wait in vain.
  func wait(_ condition: @escaping @Sendable (Record) -> Bool) async { await record.wait(condition) }
}

/// What hooks write down, and who waits for it.
final class Recording: Sendable {
  struct State {
    var record = Party.Record()
    var waiters:
      [(condition: @Sendable (Party.Record) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
  }

  let state = Mutex(State())

  func note(_ change: (inout Party.Record) -> Void) {
    let due = state.withLock { state in
      change(&state.record)
      let record = state.record
      let due = state.waiters.filter { $0.condition(record) }
      state.waiters.removeAll { $0.condition(record) }
      return due.map(\.continuation)
    }
    for continuation in due { continuation.resume() }
  }

  func wait(_ condition: @escaping @Sendable (Party.Record) -> Bool) async {
    await withCheckedContinuation { continuation in
      let isMet = state.withLock { state in
        if condition(state.record) { return true }
        state.waiters.append((condition, continuation))
        return false
      }
      if isMet { continuation.resume() }
    }
  }

  var hooks: CallEngine.Hooks {
    var hooks = CallEngine.Hooks()
    hooks.onEvent = { event in self.note { $0.events.append(event) } }
    hooks.onEncodedFrame = { track, _, timestamp in
      self.note {
        $0.encoded[track, default: 0] += 1
        $0.timestamps[track, default: []].append(timestamp.rawValue)
      }
    }
    hooks.onDecodedVideo = { _, picture, _ in
      let number = TestCard.readNumber(in: picture)
      self.note { record in
        if let number { record.pictures.append(number) } else { record.unreadablePictures += 1 }
      }
    }
    hooks.onPlayedAudio = { _, _, pull, _ in
      self.note { record in
        switch pull {
        case .packet: record.played += 1
        case .forwardErrorCorrection, .conceal: record.concealed += 1
        case .idle: break
        }
      }
    }
    return hooks
  }
}
