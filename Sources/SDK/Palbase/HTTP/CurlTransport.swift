import CPalbeCurl
import Foundation
import PalbeUnits
import Synchronization

/// HTTP over libcurl: one thread for all transfers of a runtime, connections kept and shared (docs/decisions/0014).
package final class CurlTransport: HTTPTransport {
  private let inbox: CurlInbox

  /// - Parameter trustedCertificateFile: a PEM file of authorities to trust instead of the system's.
  package init(trustedCertificateFile: String? = nil) {
    _ = Self.library
    let inbox = CurlInbox()
    self.inbox = inbox
    let thread = Thread { CurlLoop(inbox, trustedCertificateFile: trustedCertificateFile).run() }
    thread.name = "palbe-http"
    thread.start()
  }

  /// Once for the process, before any thread of ours.
  private static let library: Void = { curl_global_init(Int(CURL_GLOBAL_DEFAULT)) }()

  deinit { inbox.stop() }

  package func send(_ request: TransportRequest) async throws(TransportFault) -> TransportAnswer {
    let transfer = CurlTransfer(request)
    let inbox = inbox
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        transfer.wait(continuation)
        inbox.post(transfer)
      }
    } onCancel: {
      transfer.cancel()
      inbox.post(transfer)
    }
    return try result.get()
  }
}

/// What other threads hand to the loop.
final class CurlInbox: @unchecked Sendable {
  /// Its use from other threads is `curl_multi_wakeup`, which allows that.
  let multi: UnsafeMutableRawPointer?
  private let state = Mutex((transfers: [CurlTransfer](), isStopped: false))

  init() {
    multi = curl_multi_init()
    if let multi {
      palbe_curl_multi_set_number(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, 32)
      palbe_curl_multi_set_number(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 8)
    }
  }

  deinit { if let multi { curl_multi_cleanup(multi) } }

  /// A new transfer, or one that was cancelled.
  func post(_ transfer: CurlTransfer) {
    let isStopped = state.withLock { state in
      if !state.isStopped { state.transfers.append(transfer) }
      return state.isStopped
    }
    if isStopped || multi == nil {
      transfer.finish(.failure(.failed(.other("the transport is closed"), mayHaveArrived: false)))
    } else {
      curl_multi_wakeup(multi)
    }
  }

  func stop() {
    state.withLock { $0.isStopped = true }
    if let multi { curl_multi_wakeup(multi) }
  }

  /// What has come; nil when the transport is gone and nothing has.
  func take() -> [CurlTransfer]? {
    state.withLock { state in
      defer { state.transfers = [] }
      return state.isStopped && state.transfers.isEmpty ? nil : state.transfers
    }
  }
}

/// The thread of a transport.
private final class CurlLoop {
  private let inbox: CurlInbox
  private let authorities: String?
  private var running: [UnsafeMutableRawPointer: CurlTransfer] = [:]

  init(_ inbox: CurlInbox, trustedCertificateFile: String?) {
    self.inbox = inbox
    authorities = trustedCertificateFile
  }

  func run() {
    guard let multi = inbox.multi else { return }
    while let posted = inbox.take() {
      for transfer in posted {
        if transfer.isCancelled {
          if let easy = transfer.easy { end(easy, multi) }
          transfer.finish(.failure(.cancelled))
        } else if let easy = transfer.start(authorities: authorities) {
          running[easy] = transfer
          curl_multi_add_handle(multi, easy)
        }
      }
      var count: Int32 = 0
      curl_multi_perform(multi, &count)
      var result = CURLE_OK
      while let easy = palbe_curl_next_done(multi, &result) {
        let transfer = running[easy]
        let outcome = transfer?.outcome(result, easy)
        end(easy, multi)
        if let outcome { transfer?.finish(outcome) }
      }
      curl_multi_poll(multi, nil, 0, 1_000, nil)
    }
    for (easy, transfer) in running {
      curl_multi_remove_handle(multi, easy)
      transfer.free()
      transfer.finish(.failure(.failed(.other("the transport is closed"), mayHaveArrived: true)))
    }
  }

  private func end(_ easy: UnsafeMutableRawPointer, _ multi: UnsafeMutableRawPointer) {
    curl_multi_remove_handle(multi, easy)
    running.removeValue(forKey: easy)?.free()
  }
}
