import Synchronization

/// Where a media engine announces itself. Empty at launch; a registration lasts for the process.
public final class CallMediaRegistry: @unchecked Sendable {
  /// The process's registry.
  public static let shared = CallMediaRegistry()

  private let factory = Mutex<CallMediaFactory?>(nil)

  init() {}

  /// Installs `factory`; a later registration replaces an earlier one. Call it once, at startup.
  public func register(_ factory: @escaping CallMediaFactory) {
    self.factory.withLock { $0 = factory }
  }

  /// True when a media engine is registered.
  public var isMediaAvailable: Bool { factory.withLock { $0 != nil } }

  /// A transport of the registered engine; nil when there is none.
  package func makeTransport(e2ee: Bool) -> (any CallMediaTransport)? {
    let factory = self.factory.withLock { $0 }
    return factory?(e2ee)
  }

  /// Forgets the registration. For tests only.
  func reset() { factory.withLock { $0 = nil } }
}
