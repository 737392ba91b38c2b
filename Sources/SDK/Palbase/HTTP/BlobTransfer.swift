import Foundation
import PalbeUnits

/// Moves the bytes of attachments to and from addresses that carry their own code (S0-45): no session, no device, no
/// header that says who asks. What was cut goes on where it was, as `RetrySchedule` says; each step forward begins its
/// patience anew. An address that is over is asked for anew once, and once more after each step forward.
///
/// Failures are `BackendError`, a cancelled task `CancellationError`. What the server has, or the spool file, stays for
/// the next try.
package struct BlobTransfer: Sendable {
  /// Gives the address; `true` when the one before is over.
  package typealias Address = @Sendable (_ isOver: Bool) async throws -> String
  /// Bytes that are there, of all. Called from any thread; it must not block.
  package typealias Progress = @Sendable (_ done: Int64, _ total: Int64) -> Void

  /// Where the bytes of an upload come from.
  package enum Source: Sendable {
    /// A file, sent in one request.
    case file(path: String)
    /// At most so many bytes from an offset on, each in a request of its own; asked for again, they are the same bytes.
    case pieces(
      byteCount: Int, read: @Sendable (_ offset: Int64, _ byteCount: Int) async throws -> [UInt8])
  }

  /// Whose server, transport and clocks it uses; it has no sessions.
  private let http: HTTPClient

  package init(_ http: HTTPClient) { self.http = http }

  /// Uploads all of a blob; returns when it is on the server's medium.
  /// - Parameter isContinued: an earlier try may have begun: the server is asked how far it got. Otherwise a file is sent
  ///   from its beginning, whatever the server has.
  package func upload(
    _ source: Source, byteCount: Int64, to address: Address, isContinued: Bool = false,
    progress: @escaping Progress = { _, _ in }
  ) async throws {
    var upload = BlobUpload(
      source: source, byteCount: byteCount, transport: http.transport, progress: progress,
      offset: isContinued ? nil : 0)
    try await carry(&upload, address)
    progress(byteCount, byteCount)
  }

  /// Downloads a blob into a file, behind what it holds already; returns when it has all bytes. They are not looked at:
  /// the file's hash is the caller's to check.
  /// - Parameter tag: the server's `ETag`: what the file holds counts only if it is still this.
  package func download(
    to path: String, byteCount: Int64, tag: String, from address: Address,
    progress: @escaping Progress = { _, _ in }
  ) async throws {
    var download = BlobDownload(
      path: path, byteCount: byteCount, tag: tag, transport: http.transport, progress: progress)
    try await carry(&download, address)
    progress(byteCount, byteCount)
  }

  private func carry(_ transfer: inout some BlobAttempts, _ address: Address) async throws {
    var url = try resolve(await address(false))
    var schedule = RetrySchedule()
    let time = http.time
    var start = time.now()
    var mayAsk = true
    while true {
      try Task.checkCancellation()
      let (step, isForward) = try await transfer.attempt(url)
      if isForward {
        schedule = RetrySchedule()
        start = time.now()
        mayAsk = true
      }
      switch step {
      case .done: return
      case .more: continue
      case .failed(.refused(let failure)) where failure.isOfAddress && mayAsk:
        mayAsk = false
        url = try resolve(await address(true))
      case .failed(let outcome):
        guard
          let wait = schedule.wait(
            after: outcome, isRepeatable: true, elapsed: time.now() - start, jitter: time.jittered)
        else { throw Self.error(outcome) }
        try await time.sleep(wait)
      }
    }
  }

  private func resolve(_ address: String) throws -> String {
    guard let url = http.server.resolve(address) else { throw BackendError.unexpectedAnswer(requestId: nil) }
    return url
  }

  private static func error(_ outcome: RetrySchedule.Outcome) -> BackendError {
    switch outcome {
    case .refused(let failure): .server(failure)
    case .fault(.file(let number), _): .storeUnavailable(StoreFault(errno: number))
    case .fault(.answerTooLarge, _): .integrity
    case .fault(let fault, _): .unreachable(fault)
    }
  }
}

/// What became of one request of a transfer.
enum BlobStep {
  case done
  /// The next request may follow at once.
  case more
  case failed(RetrySchedule.Outcome)
}

/// A transfer, request by request.
protocol BlobAttempts {
  /// Carries out one request; `isForward` when the other side has more than ever before.
  mutating func attempt(_ url: String) async throws -> (step: BlobStep, isForward: Bool)
}

extension ServerFailure {
  /// An address that carries its own code is over, or was never right.
  var isOfAddress: Bool { status == 403 || status == 410 }
}
