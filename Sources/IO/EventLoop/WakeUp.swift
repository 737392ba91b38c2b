import CPalbeLinux

/// Wakes a thread that waits in a `Poller`: an eventfd. Any thread may call `wake`.
public final class WakeUp: Sendable {
  /// Readable after `wake`, until `drain`.
  public let fileDescriptor: Int32

  /// Fails when the process has no descriptor left.
  public init() throws(SystemError) {
    fileDescriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    guard fileDescriptor >= 0 else { throw SystemError(.eventfd) }
  }

  deinit { close(fileDescriptor) }

  /// Makes the descriptor readable. Several calls before a `drain` are one.
  public func wake() {
    var one: UInt64 = 1
    // A full counter refuses the write, and is readable already.
    _ = write(fileDescriptor, &one, 8)
  }

  /// Makes the descriptor wait for the next `wake`. Call it before looking at what the waker left.
  public func drain() {
    var count: UInt64 = 0
    _ = read(fileDescriptor, &count, 8)
  }
}
