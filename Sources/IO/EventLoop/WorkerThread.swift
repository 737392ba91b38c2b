import CPalbeLinux
import Synchronization

/// A thread of the process: named, and joined once.
public final class WorkerThread: Sendable {
  private let handle: Mutex<pthread_t?>

  /// Starts a thread.
  /// - Parameter name: at most 15 bytes are shown by `top` and debuggers.
  /// - Parameter stackByteCount: 0 takes the system's default.
  public convenience init(
    name: String, stackByteCount: Int = 0, body: @escaping @Sendable () -> Void
  ) throws(SystemError) {
    try self.init(name: name, stackByteCount: stackByteCount, moving: ()) { _ in body() }
  }

  /// Starts a thread that owns `state`: a socket, a poller or a core that cannot be copied moves into it.
  public init<State: ~Copyable & Sendable>(
    name: String, stackByteCount: Int = 0, moving state: consuming State,
    body: @escaping @Sendable (consuming State) -> Void
  ) throws(SystemError) {
    let start = Unmanaged.passRetained(Start(name: name, state: state, body: body) as AnyStart)
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    if stackByteCount > 0 { pthread_attr_setstacksize(&attributes, stackByteCount) }
    var thread = pthread_t()
    let code = pthread_create(&thread, &attributes, runThread, start.toOpaque())
    guard code == 0 else {
      start.release()
      throw SystemError(.pthreadCreate, code: code)
    }
    handle = Mutex(thread)
  }

  deinit {
    // Nobody will join: the thread frees itself at its end.
    if let thread = handle.withLock({ $0 }) { pthread_detach(thread) }
  }

  /// Waits for the thread's end. Only the first call waits; a thread must not join itself.
  public func join() {
    let thread = handle.withLock { handle in
      defer { handle = nil }
      return handle
    }
    if let thread { pthread_join(thread, nil) }
  }
}

private func runThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  guard let context else { return nil }
  Unmanaged<AnyStart>.fromOpaque(context).takeRetainedValue().run()
  return nil
}

/// What a new thread runs, without its generic type.
private class AnyStart {
  func run() {}
}

private final class Start<State: ~Copyable & Sendable>: AnyStart {
  private let name: String
  private var state: State?
  private let body: @Sendable (consuming State) -> Void

  init(name: String, state: consuming State, body: @escaping @Sendable (consuming State) -> Void) {
    self.name = name
    self.state = consume state
    self.body = body
  }

  override func run() {
    palbe_thread_set_name(pthread_self(), String(name.prefix(15)))
    if let state = state.take() { body(state) }
  }
}
