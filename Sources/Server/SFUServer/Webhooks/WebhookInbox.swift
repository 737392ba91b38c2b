import CPalbeCurl
import PalbeSFUCore
import Synchronization

/// The API key that signs webhooks.
struct WebhookSigner: Sendable {
  var keyName: String
  var secret: String
}

/// Notices on their way from the workers to the thread that sends them, and libcurl's handle, which wakes it.
final class WebhookInbox: Sendable {
  struct Content: Sendable {
    var notices: [RoomNotice] = []
    /// Notices that found no place.
    var droppedCount = 0
  }

  private struct Handle: @unchecked Sendable { let raw: UnsafeMutableRawPointer }

  private let capacity: Int
  private let content = Mutex(Content())
  private let signer: Mutex<WebhookSigner>
  private let stopping = Atomic<Bool>(false)
  private let handle: Handle

  private static let isInitialized = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  /// Nil when the library has no memory.
  init?(capacity: Int, signer: WebhookSigner) {
    guard Self.isInitialized, let raw = curl_multi_init() else { return nil }
    self.capacity = capacity
    self.signer = Mutex(signer)
    handle = Handle(raw: raw)
  }

  deinit { curl_multi_cleanup(handle.raw) }

  // MARK: Any thread

  /// Never waits.
  func post(_ notice: RoomNotice) {
    let isFirst = content.withLock { content in
      guard content.notices.count < capacity else {
        content.droppedCount += 1
        return false
      }
      content.notices.append(notice)
      return content.notices.count == 1
    }
    if isFirst { curl_multi_wakeup(handle.raw) }
  }

  /// Attempts from now on are signed with this.
  func sign(with signer: WebhookSigner) { self.signer.withLock { $0 = signer } }

  /// True the first time.
  func stop() -> Bool {
    guard !stopping.exchange(true, ordering: .acquiringAndReleasing) else { return false }
    curl_multi_wakeup(handle.raw)
    return true
  }

  // MARK: The sending thread

  var multi: UnsafeMutableRawPointer { handle.raw }
  var currentSigner: WebhookSigner { signer.withLock { $0 } }
  var isStopping: Bool { stopping.load(ordering: .acquiring) }

  func take() -> Content {
    content.withLock { content in
      defer { content = Content() }
      return content
    }
  }
}
