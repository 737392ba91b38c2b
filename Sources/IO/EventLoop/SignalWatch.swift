import CPalbeLinux
public import PalbeUnits

/// A signal that a program acts on.
public enum Signal: Int32, Sendable, CaseIterable {
  case hangUp = 1
  case interrupt = 2
  case user1 = 10
  case user2 = 12
  case terminate = 15
}

/// Turns signals into a readable descriptor (signalfd), so that no code runs inside a handler.
///
/// Make it on the main thread before any other thread starts: it blocks the signals in the calling thread,
/// and
/// threads made later inherit that.
public final class SignalWatch: Sendable {
  /// Readable when a watched signal has come.
  public let fileDescriptor: Int32

  /// Begins to watch; a signal that comes now waits to be read.
  public init(_ signals: [Signal] = [.interrupt, .terminate]) throws(SystemError) {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal.rawValue) }
    let code = pthread_sigmask(SIG_BLOCK, &set, nil)
    guard code == 0 else { throw SystemError(.sigmask, code: code) }
    fileDescriptor = signalfd(-1, &set, Int32(SFD_CLOEXEC | SFD_NONBLOCK))
    guard fileDescriptor >= 0 else { throw SystemError(.signalfd) }
  }

  deinit { close(fileDescriptor) }

  /// The next signal that has come, or nil.
  public func next() -> Signal? {
    var info = signalfd_siginfo()
    guard read(fileDescriptor, &info, MemoryLayout<signalfd_siginfo>.size) > 0 else { return nil }
    return Signal(rawValue: Int32(info.ssi_signo))
  }

  /// Waits for the next signal, for so long at most; nil when none came.
  public func wait(atMost time: TimeDelta) -> Signal? {
    var ready = pollfd(fd: fileDescriptor, events: Int16(POLLIN), revents: 0)
    poll(&ready, 1, Int32(clamping: max(0, time.wholeMilliseconds)))
    return next()
  }

  /// Waits for the next signal.
  public func wait() -> Signal {
    while true {
      var ready = pollfd(fd: fileDescriptor, events: Int16(POLLIN), revents: 0)
      poll(&ready, 1, -1)
      if let signal = next() { return signal }
    }
  }

  /// Waits while `goesOn`, which is asked again after `interval`, for so long at most. True when SIGTERM or SIGINT came
  /// before that: whoever sends a second one does not want to wait.
  public func isHurried(within time: TimeDelta, every interval: TimeDelta, while goesOn: () -> Bool) -> Bool {
    let deadline = MonotonicClock.now() + time
    while goesOn(), MonotonicClock.now() < deadline {
      switch wait(atMost: min(interval, deadline - MonotonicClock.now())) {
      case .terminate, .interrupt: return true
      default: continue
      }
    }
    return false
  }

  /// Writes to a closed connection then fail with EPIPE instead of ending the process.
  public static func ignoreBrokenPipes() { palbe_ignore_signal(SIGPIPE) }
}
