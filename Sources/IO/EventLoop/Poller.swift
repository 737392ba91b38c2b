import CPalbeLinux
import Glibc
import PalbeUnits

/// Waits for descriptors to become ready: one epoll instance, owned by one thread.
///
///     var poller = try Poller()
///     try poller.add(socket.fileDescriptor, token: 1)
///     for index in 0..<(try poller.wait(until: core.nextDeadline)) { switch poller[index].token { … } }
///
/// Level-triggered; no allocation after `init`.
public struct Poller: ~Copyable, @unchecked Sendable {
  /// What to wait for. Errors and hang-ups are always reported.
  public struct Interest: OptionSet, Sendable {
    /// The set as bits.
    public let rawValue: UInt8
    /// From bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    /// Something can be read, or the other side has closed.
    public static let readable = Interest(rawValue: 1)
    /// A write would not block.
    public static let writable = Interest(rawValue: 2)

    var mask: UInt32 {
      (contains(.readable) ? EPOLLIN.rawValue : 0) | (contains(.writable) ? EPOLLOUT.rawValue : 0)
    }
  }

  /// One ready descriptor.
  public struct Event: Sendable {
    /// The number given to `add`.
    public var token: UInt64
    /// There is something to read, or an error to be read.
    public var isReadable: Bool
    /// A write would not block.
    public var isWritable: Bool
    /// The descriptor has failed or both sides have closed.
    public var isHungUp: Bool
  }

  private let descriptor: Int32
  private let events: UnsafeMutableBufferPointer<epoll_event>
  private var ready = 0

  /// - Parameter capacity: how many events one `wait` reports; the rest come with the next.
  public init(capacity: Int = 64) throws(SystemError) {
    descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard descriptor >= 0 else { throw SystemError(.epollCreate) }
    events = .allocate(capacity: max(1, capacity))
    events.initialize(repeating: epoll_event())
  }

  deinit {
    close(descriptor)
    events.deallocate()
  }

  /// Begins to watch; `token` comes back with each event.
  public borrowing func add(
    _ fileDescriptor: Int32, token: UInt64, interest: Interest = .readable
  ) throws(SystemError) {
    try control(EPOLL_CTL_ADD, fileDescriptor, token, interest)
  }

  /// Changes what to wait for.
  public borrowing func modify(
    _ fileDescriptor: Int32, token: UInt64, interest: Interest
  ) throws(SystemError) {
    try control(EPOLL_CTL_MOD, fileDescriptor, token, interest)
  }

  /// Stops watching. A closed descriptor leaves by itself.
  public borrowing func remove(_ fileDescriptor: Int32) throws(SystemError) {
    try control(EPOLL_CTL_DEL, fileDescriptor, 0, [])
  }

  private borrowing func control(
    _ operation: Int32, _ fileDescriptor: Int32, _ token: UInt64, _ interest: Interest
  ) throws(SystemError) {
    var event = epoll_event()
    event.events = interest.mask
    event.data.u64 = token
    guard epoll_ctl(descriptor, operation, fileDescriptor, &event) == 0 else {
      throw SystemError(.epollControl)
    }
  }

  /// Waits until a descriptor is ready or `deadline` on `MonotonicClock` has passed; nil waits without end.
  /// - Returns: the number of ready descriptors, 0 at the deadline or after a signal.
  public mutating func wait(until deadline: Instant?) throws(SystemError) -> Int {
    guard let deadline, deadline != .distantFuture else { return try wait(for: nil) }
    return try wait(for: max(.zero, deadline - MonotonicClock.now()))
  }

  /// Waits at most `timeout`, to the nanosecond; zero only looks, nil waits without end.
  public mutating func wait(for timeout: TimeDelta?) throws(SystemError) -> Int {
    ready = 0
    let count: Int32
    if let timeout {
      let nanoseconds = max(0, timeout.nanoseconds)
      var time = timespec(
        tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
      count = epoll_pwait2(descriptor, events.baseAddress, Int32(events.count), &time, nil)
    } else {
      count = epoll_pwait2(descriptor, events.baseAddress, Int32(events.count), nil, nil)
    }
    guard count >= 0 else {
      if errno == EINTR { return 0 }
      throw SystemError(.epollWait)
    }
    ready = Int(count)
    return ready
  }

  /// The event at `index`, below what the last `wait` returned.
  public subscript(index: Int) -> Event {
    precondition(index >= 0 && index < ready)
    let event = events[index]
    let failed = event.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
    return Event(
      token: event.data.u64,
      isReadable: event.events & EPOLLIN.rawValue != 0 || failed,
      isWritable: event.events & EPOLLOUT.rawValue != 0,
      isHungUp: failed)
  }
}
