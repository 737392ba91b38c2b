import CPalbeLinux

/// A thread that runs one body and is joined once.
final class ServiceThread: @unchecked Sendable {
  private let thread: pthread_t

  private final class Body {
    let name: String
    let run: @Sendable () -> Void
    init(name: String, run: @escaping @Sendable () -> Void) {
      self.name = name
      self.run = run
    }
  }

  /// Nil when the system has no thread left.
  init?(name: String, _ run: @escaping @Sendable () -> Void) {
    let body = Unmanaged.passRetained(Body(name: name, run: run))
    var thread = pthread_t()
    let code = pthread_create(
      &thread, nil,
      { context in
        guard let context else { return nil }
        let body = Unmanaged<Body>.fromOpaque(context).takeRetainedValue()
        palbe_thread_set_name(pthread_self(), String(body.name.prefix(15)))
        body.run()
        return nil
      }, body.toOpaque())
    guard code == 0 else {
      body.release()
      return nil
    }
    self.thread = thread
  }

  var isCurrent: Bool { pthread_equal(thread, pthread_self()) != 0 }

  /// Once.
  func join() { pthread_join(thread, nil) }
}
