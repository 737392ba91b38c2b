import PalbeEventLoop
import PalbeServerObservation
import PalbeUnits
import PalbeWebServer
import Synchronization

/// Answers `/metrics` on a port of its own.
final class ServerMetrics: WebServerHandler {
  private let page: Mutex<MetricsPage>
  private let write: @Sendable (inout Exposition) -> Void

  init(_ page: MetricsPage, _ write: @escaping @Sendable (inout Exposition) -> Void) {
    self.page = Mutex(page)
    self.write = write
  }

  /// Who may ask, from now on.
  func reload(_ page: MetricsPage) { self.page.withLock { $0 = page } }

  func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision {
    .reject(.text("not found", status: 404))
  }

  func respond(to request: HTTPRequest) -> HTTPResponse {
    let page = page.withLock { $0 }
    if let refusal = page.refusal(of: request) { return refusal }
    var text = Exposition()
    write(&text)
    return page.answer(text)
  }
}

extension Exposition {
  mutating func add(_ loop: BackendLoop) {
    let statistics = loop.statistics
    family("palbe_server_backend_requests_total", .counter, "Requests that the backend has carried out.") {
      $0.sample(value: statistics.requestCount)
    }
    family("palbe_server_backend_waiting", .gauge, "Requests that wait for the backend.") {
      $0.sample(value: loop.waitingCount)
    }
    family("palbe_server_overload_total", .counter, "Requests refused because too many waited.") {
      $0.sample(value: statistics.overloadCount)
    }
    family(
      "palbe_server_store_reopened_total", .counter, "How often the store was opened again after a failure."
    ) {
      $0.sample(value: statistics.reopenCount)
    }
    family("palbe_server_batch_requests", .histogram, "Requests of one transaction.") {
      loop.batchSizes.write(into: &$0)
    }
    family("palbe_server_transaction_seconds", .histogram, "One transaction with its wait for the disk.") {
      loop.transactionTimes.write(into: &$0)
    }
    family("palbe_server_queue_rows", .gauge, "Rows that wait for devices.") {
      $0.sample(value: statistics.queueRowCount)
    }
  }

  mutating func add(_ hub: RealtimeHub) {
    let statistics = hub.statistics
    family("palbe_server_sockets", .gauge, "Open sockets.") { $0.sample(value: hub.count) }
    family("palbe_server_sockets_opened_total", .counter, "Sockets that were opened.") {
      $0.sample(value: statistics.openedCount)
    }
    family("palbe_server_sockets_ended_total", .counter, "Sockets that the server ended, by why.") {
      $0.sample([("reason", "slow")], value: statistics.slowCount)
      $0.sample([("reason", "silent")], value: statistics.silentCount)
      $0.sample([("reason", "session")], value: statistics.sessionEndCount)
    }
  }

  mutating func add(_ blobs: BlobStore) {
    let counts = blobs.counts
    family("palbe_server_blobs", .gauge, "Attachments that are there.") {
      $0.sample(value: counts.storedCount)
    }
    family("palbe_server_blob_bytes", .gauge, "Their bytes.") { $0.sample(value: counts.storedByteCount) }
    family("palbe_server_blob_transfer_bytes_total", .counter, "Bytes of attachments.") {
      $0.sample([("direction", "in")], value: counts.receivedByteCount)
      $0.sample([("direction", "out")], value: counts.sentByteCount)
    }
    family("palbe_server_blob_transfers", .gauge, "Uploads and downloads that go on.") {
      $0.sample([("direction", "in")], value: counts.openUploadCount)
      $0.sample([("direction", "out")], value: counts.openDownloadCount)
    }
    family("palbe_server_blob_faults_total", .counter, "Failures of the disk of attachments.") {
      $0.sample(value: counts.faultCount)
    }
  }

  /// Also without a destination, as zeros: what asks for the family finds it.
  mutating func add(_ pushes: PushSender?) {
    let counts = pushes?.counts
    family("palbe_server_pushes_total", .counter, "Pushes by how they went.") {
      $0.sample([("result", "sent")], value: counts?.sentCount ?? 0)
      $0.sample([("result", "failed")], value: counts?.failedCount ?? 0)
      $0.sample([("result", "lost")], value: counts?.lostCount ?? 0)
    }
    family("palbe_server_pushes_waiting", .gauge, "Pushes that wait.") {
      $0.sample(value: counts?.waitingCount ?? 0)
    }
  }

  mutating func add(_ accounts: AccountService.Statistics) {
    family("palbe_server_passwords", .gauge, "Passwords that are being hashed, or wait for it.") {
      $0.sample(value: accounts.passwordCount)
    }
    family(
      "palbe_server_account_requests_open", .gauge, "Requests about accounts that wait for their answer."
    ) {
      $0.sample(value: accounts.requestCount)
    }
    family(
      "palbe_server_sessions_refused", .gauge, "Sessions that are over, and whose access tokens are not yet."
    ) { $0.sample(value: accounts.refusedCount) }
    family(
      "palbe_server_refresh_thefts_total", .counter, "Sessions ended because a refresh token was used twice."
    ) {
      $0.sample(value: accounts.theftCount)
    }
  }
}
