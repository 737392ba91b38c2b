import PalbeCallCore
import PalbeEventLoop
import PalbeUnits
import PalbeVP8
import Synchronization

/// The thread that decodes what others send, one decoder a track, each frame as soon as it comes.
struct PictureLoop: ~Copyable {
  private let threads: CallThreads
  private var poller: Poller
  private var tracks: [RemoteTrackID: ShownTrack] = [:]
  private var messages: [CallThreads.PictureMessage] = []

  /// Runs until the call ends; the body of the thread.
  static func run(_ threads: CallThreads) {
    do {
      var loop = try PictureLoop(threads)
      try loop.run()
    } catch {
      threads.leave(because: .system("the picture thread failed: \(error)"))
    }
  }

  private init(_ threads: CallThreads) throws {
    let poller = try Poller()
    try poller.add(threads.pictures.wakeUp.fileDescriptor, token: 0)
    self.threads = threads
    self.poller = poller
  }

  private mutating func run() throws {
    while true {
      _ = try poller.wait(until: nil)
      threads.pictures.drain(into: &messages)
      for message in messages {
        if threads.workersEnd.load(ordering: .acquiring) { return }
        switch message {
        case .frame(let frame): decode(frame)
        case .trackRemoved(let track): tracks[track] = nil
        }
      }
      if threads.workersEnd.load(ordering: .acquiring) { return }
    }
  }

  private mutating func decode(_ frame: ReceivedVideoFrame) {
    let track: ShownTrack
    if let known = tracks[frame.track] {
      track = known
    } else {
      guard let new = try? ShownTrack() else { return }
      tracks[frame.track] = new
      track = new
    }
    switch track.decode(frame) {
    case .shown: threads.hooks.onDecodedVideo?(frame.track, track.picture, MonotonicClock.now())
    case .nothing: break
    case .broken: threads.network.send(.pictureLost(frame.track))
    }
  }
}

/// A remote track's decoder and its last picture. Belongs to the picture thread.
private final class ShownTrack {
  enum Outcome { case shown, nothing, broken }

  private var decoder: VP8Decoder
  private var waitsForKeyFrame = false
  private(set) var picture = I420Image(width: 1, height: 1)

  init() throws(VP8Error) { decoder = try VP8Decoder() }

  func decode(_ frame: ReceivedVideoFrame) -> Outcome {
    if waitsForKeyFrame, !frame.isKeyFrame { return .nothing }
    do throws(VP8Error) {
      let isShown = try decoder.decode(frame.bytes.span, into: &picture)
      waitsForKeyFrame = false
      return isShown ? .shown : .nothing
    } catch {
      waitsForKeyFrame = true
      return .broken
    }
  }
}
