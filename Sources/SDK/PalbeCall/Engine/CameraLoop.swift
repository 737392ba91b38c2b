import PalbeCallCore
import PalbeEventLoop
import PalbeUnits
import PalbeVP8
import Synchronization

/// The camera's thread: takes a picture at each tick and encodes it at once.
///
/// A picture whose time has passed before the one before it was encoded is left out. A key frame is made of the next picture
/// after it was asked for.
struct CameraLoop: ~Copyable {
  private let threads: CallThreads
  private var poller: Poller
  private var source: any VideoSource
  private var encoder: VP8Encoder
  private var ticks: Ticks?
  private var needsKeyFrame = true
  private let timestampOffset: RTPTimestamp
  private var picture: I420Image
  private var frame: [UInt8] = []
  private var messages: [CallThreads.CameraMessage] = []

  /// Runs until the call ends; the body of the thread.
  static func run(_ threads: CallThreads) {
    guard let source = threads.configuration.videoSource else { return }
    do {
      var loop = try CameraLoop(threads, source)
      try loop.run()
    } catch {
      threads.leave(because: .system("the camera thread failed: \(error)"))
    }
  }

  private init(_ threads: CallThreads, _ source: any VideoSource) throws {
    let poller = try Poller()
    try poller.add(threads.camera.wakeUp.fileDescriptor, token: 0)
    let configuration = threads.configuration
    let encoder = try VP8Encoder(
      VP8Configuration(
        width: source.width, height: source.height, framesPerSecond: configuration.framesPerSecond,
        bitrate: configuration.videoBitrate))
    frame.reserveCapacity(encoder.maximumFrameByteCount)
    self.threads = threads
    self.source = source
    self.poller = poller
    self.encoder = encoder
    picture = I420Image(width: source.width, height: source.height)
    var random = SystemRandom.source()
    timestampOffset = RTPTimestamp(UInt32(truncatingIfNeeded: random.next()))
  }

  private mutating func run() throws {
    while true {
      let count = try poller.wait(until: ticks?.deadline)
      if threads.workersEnd.load(ordering: .acquiring) { return }
      if count > 0 { takeMessages() }
      if let deadline = ticks?.deadline, MonotonicClock.now() >= deadline { try tick() }
    }
  }

  private mutating func takeMessages() {
    threads.camera.drain(into: &messages)
    for message in messages {
      switch message {
      case .begin:
        if ticks == nil {
          ticks = Ticks(from: MonotonicClock.now(), perSecond: threads.configuration.framesPerSecond)
        }
      case .keyFrameNeeded: needsKeyFrame = true
      }
    }
  }

  private mutating func tick() throws {
    let now = MonotonicClock.now()
    ticks?.skip(at: now, ifBehindBy: 0)
    guard let ticks else { return }
    let (index, due) = (ticks.index, ticks.deadline)
    self.ticks?.advance()
    guard !threads.switches.isMuted(.camera), source.next(frameIndex: index, into: &picture) else {
      return
    }
    threads.hooks.onCapturedVideo?(index, now)
    // What was asked while the picture was taken.
    takeMessages()
    try Self.encode(picture, at: due, asKeyFrame: needsKeyFrame, with: &encoder, into: &frame)
    needsKeyFrame = false
    let timestamp = timestampOffset + index * 90_000 / threads.configuration.framesPerSecond
    threads.hooks.onEncodedFrame?(.camera, frame, timestamp)
    if !threads.network.send(.frame(.camera, Array(frame), timestamp)) { needsKeyFrame = true }
  }

  private static func encode(
    _ picture: borrowing I420Image, at instant: Instant, asKeyFrame: Bool, with encoder: inout VP8Encoder,
    into frame: inout [UInt8]
  ) throws(VP8Error) {
    let room = encoder.maximumFrameByteCount
    frame.removeAll(keepingCapacity: true)
    try frame.append(addingCapacity: room) { output throws(VP8Error) in
      _ = try encoder.encode(picture, capturedAt: instant, forceKeyFrame: asKeyFrame, into: &output)
    }
  }
}
