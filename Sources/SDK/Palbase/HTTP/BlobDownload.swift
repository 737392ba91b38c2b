import Foundation
import PalbeUnits

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// A download that goes on behind what its file holds.
struct BlobDownload: BlobAttempts {
  let path: String
  let byteCount: Int64
  let tag: String
  let transport: any HTTPTransport
  let progress: BlobTransfer.Progress
  /// The file was thrown away once, because it did not fit to what the server has.
  var isAnew = false

  mutating func attempt(_ url: String) async throws -> (step: BlobStep, isForward: Bool) {
    var held = try size()
    if held > byteCount {
      unlink(path)
      held = 0
    }
    if held == byteCount, byteCount > 0 { return (.done, false) }
    var request = TransportRequest(method: "GET", url: url)
    if held > 0 { request.headers = [.init("If-Range", "\"\(tag)\"")] }
    request.sink = .file(path: path, limit: byteCount, resumes: true)
    request.timeout = nil
    let (progress, total, before) = (progress, byteCount, held)
    // An answer of everything begins anew, and then it has more bytes than are missing.
    request.progress = {
      progress(min($0.receiveTotal > total - before ? $0.received : before + $0.received, total), total)
    }
    switch try await transport.outcome(of: request) {
    case .success:
      guard try size() == byteCount else { throw BackendError.integrity }
      return (.done, true)
    case .failure(let outcome):
      if case .refused(let failure) = outcome, failure.status == 416, !isAnew {
        isAnew = true
        unlink(path)
        return (.more, false)
      }
      return (.failed(outcome), try size() > held)
    }
  }

  private func size() throws -> Int64 {
    var status = stat()
    if stat(path, &status) == 0 { return Int64(status.st_size) }
    guard errno == ENOENT else { throw BackendError.storeUnavailable(StoreFault(errno: errno)) }
    return 0
  }
}
