import CPalbeCurl
import PalbeSFUCore
import Synchronization

/// The API key that signs webhooks.
struct WebhookSigner: Sendable {
  var keyName: String
  var secret: String
}

/// Where events go, and whose key signs them.
struct WebhookTarget: Sendable {
  var urls: [WebhookURL]
  var signer: WebhookSigner
}

/// Notices on their way from the workers to the thread that sends them, and libcurl's handle, which wakes it.
final class WebhookInbox: Sendable {
  struct Content: Sendable {
    var notices: [RoomNotice] = []
    /// Notices that found no place.
    var droppedCount = 0
    /// Where they go; nil where nobody wants to know.
    var target: WebhookTarget?
  }

  private struct Handle: @unchecked Sendable { let raw: UnsafeMutableRawPointer }

  private let capacity: Int
  private let content: Mutex<Content>
  private let stopping = Atomic<Bool>(false)
  private let handle: Handle

  private static let isInitialized = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  /// Nil when the library has no memory.
  init?(capacity: Int, target: WebhookTarget?) {
    guard Self.isInitialized, let raw = curl_multi_init() else { return nil }
    self.capacity = capacity
    content = Mutex(Content(target: target))
    handle = Handle(raw: raw)
  }

  deinit { curl_multi_cleanup(handle.raw) }

  // MARK: Any thread

  /// Never waits.
  func post(_ notice: RoomNotice) {
    let isFirst = content.withLock { content in
      guard content.target != nil else { return false }
      guard content.notices.count < capacity else {
        content.droppedCount += 1
        return false
      }
      content.notices.append(notice)
      return content.notices.count == 1
    }
    if isFirst { curl_multi_wakeup(handle.raw) }
  }

  /// Events from now on go there; attempts from now on, of earlier events too, are signed so. Nil: nobody is told any more.
  func change(to target: WebhookTarget?) { content.withLock { $0.target = target } }

  /// True the first time.
  func stop() -> Bool {
    guard !stopping.exchange(true, ordering: .acquiringAndReleasing) else { return false }
    curl_multi_wakeup(handle.raw)
    return true
  }

  // MARK: The sending thread

  var multi: UnsafeMutableRawPointer { handle.raw }
  var signer: WebhookSigner? { content.withLock { $0.target?.signer } }
  var isStopping: Bool { stopping.load(ordering: .acquiring) }

  func take() -> Content {
    content.withLock { content in
      defer { content = Content(target: content.target) }
      return content
    }
  }
}
