import PalbeCallCore
import PalbeEventLoop
import PalbeFrameEncryption
import PalbeUnits
import PalbeWebServer
import Synchronization

/// What the threads of one call share: a mailbox for each, flags and latches. Nothing else crosses threads.
///
///     signaling ─signal──▶ network ─pulled──▶ sound     microphone and playout, every 20 ms
///                          │  ▲ ▲──frame─────┘
///                          │  └──frame────── camera    takes and encodes pictures
///                          └──frame────────▶ pictures  decodes what others send
final class CallThreads: Sendable {
  /// To the thread that owns the session and the socket.
  enum NetworkMessage: Sendable {
    case signal([UInt8])
    case signalingOpened(WebSocketClient)
    case signalingClosed
    case frame(LocalTrack, [UInt8], RTPTimestamp)
    case pullAudio([RemoteTrackID])
    case pictureLost(RemoteTrackID)
    case installKey([UInt8], PalbeFrameEncryption.SendSwitch, Latch<Result<Void, CallEngineError>>)
    case confirmSendKey
    case change(LiveKitKeyChange, Latch<Result<Void, CallEngineError>>)
    case setMuted(LocalTrack, Bool)
    case statistics(Latch<CallStatistics?>)
    case leave
  }

  /// To the thread of microphone and playout.
  enum SoundMessage: Sendable {
    /// Media can flow.
    case begin
    case trackAdded(RemoteTrackID)
    case trackRemoved(RemoteTrackID)
    case pulled([(RemoteTrackID, AudioPull)])
  }

  /// To the thread of the camera.
  enum CameraMessage: Sendable {
    case begin
    case keyFrameNeeded
  }

  /// To the thread that decodes pictures.
  enum PictureMessage: Sendable {
    case frame(ReceivedVideoFrame)
    case trackRemoved(RemoteTrackID)
  }

  let configuration: CallEngine.Configuration
  let hooks: CallEngine.Hooks
  let network: Mailbox<NetworkMessage>
  let sound: Mailbox<SoundMessage>
  let camera: Mailbox<CameraMessage>
  let pictures: Mailbox<PictureMessage>

  /// The threads besides the network's shall end.
  let workersEnd = Atomic(false)
  let switches: MuteSwitches
  /// A message of the server found the mailbox full: the session no longer knows what the server thinks.
  let lostSignal = Atomic(false)
  /// The signaling link has been opened.
  let hasLink = Atomic(false)

  /// The session's join request, or why there is no session.
  let joinRequest = Latch<Result<[UInt8], CallEngineError>>()
  /// Media flows, or never will.
  let connected = Latch<Result<Void, CallEngineError>>()
  /// Every thread has ended; the last counters.
  let finished = Latch<CallStatistics?>()

  init(
    configuration: CallEngine.Configuration, hooks: CallEngine.Hooks, switches: MuteSwitches
  ) throws(SystemError) {
    self.switches = switches
    self.configuration = configuration
    self.hooks = hooks
    network = try Mailbox(capacity: 4_096)
    sound = try Mailbox(capacity: 1_024)
    camera = try Mailbox(capacity: 256)
    pictures = try Mailbox(capacity: 512)
  }

  /// Asks the network thread to leave; it takes the others with it.
  func leave(because reason: CallEngineError = .cancelled) {
    connected.set(.failure(reason))
    network.send(.leave)
  }
}

/// Which of our tracks are muted: set by the app, read by the threads that take media.
final class MuteSwitches: Sendable {
  private let microphone = Atomic(false)
  private let camera = Atomic(false)

  func set(_ track: LocalTrack, _ muted: Bool) {
    switch track {
    case .microphone: microphone.store(muted, ordering: .relaxed)
    case .camera: camera.store(muted, ordering: .relaxed)
    }
  }

  func isMuted(_ track: LocalTrack) -> Bool {
    switch track {
    case .microphone: microphone.load(ordering: .relaxed)
    case .camera: camera.load(ordering: .relaxed)
    }
  }
}

/// Hears the server for the network thread.
final class SignalingHandler: WebSocketHandler {
  private let threads: CallThreads
  private let hasOpened = Atomic(false)
  /// The connection is gone.
  let isGone = Latch<Void>()

  init(_ threads: CallThreads) { self.threads = threads }

  func opened() { hasOpened.store(true, ordering: .relaxed) }
  func received(text: String) {}

  func received(binary: [UInt8]) {
    if !threads.network.send(.signal(binary)) { threads.lostSignal.store(true, ordering: .relaxed) }
  }

  func closed(_ closure: WebSocketClosure) {
    isGone.set(())
    // A link that never opened is the business of whoever tried to open it.
    guard hasOpened.load(ordering: .relaxed) else { return }
    if !threads.network.send(.signalingClosed) { threads.lostSignal.store(true, ordering: .relaxed) }
  }
}
