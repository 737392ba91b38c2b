import PalbeUnits

/// An upload that goes on from where the server says that it is.
struct BlobUpload: BlobAttempts {
  let source: BlobTransfer.Source
  let byteCount: Int64
  let transport: any HTTPTransport
  let progress: BlobTransfer.Progress
  /// How much the server has; nil: it must be asked.
  var offset: Int64?
  /// The most it ever had.
  var farthest: Int64 = 0
  /// Answers that left the place open, one after another.
  var contradictions = 0

  mutating func attempt(_ url: String) async throws -> (step: BlobStep, isForward: Bool) {
    guard let offset else { return try await ask(url) }
    let request = try await piece(from: offset, url)
    switch try await transport.outcome(of: request) {
    case .success(let answer):
      if answer.status == 201 { return (.done, true) }
      return arrived(answer)
    case .failure(let outcome):
      // An address that is over was refused before a byte was taken.
      if case .refused(let failure) = outcome, failure.isOfAddress {
        return (.failed(outcome), false)
      }
      self.offset = nil
      if case .refused(let failure) = outcome, failure.code == .uploadOffsetMismatch, contradictions < 3 {
        contradictions += 1
        return (.more, false)
      }
      return (.failed(outcome), false)
    }
  }

  private mutating func ask(_ url: String) async throws -> (step: BlobStep, isForward: Bool) {
    var request = TransportRequest(method: "HEAD", url: url)
    request.timeout = .seconds(20)
    switch try await transport.outcome(of: request) {
    case .success(let answer): return arrived(answer)
    case .failure(let outcome): return (.failed(outcome), false)
    }
  }

  /// The server says how much it has.
  private mutating func arrived(_ answer: TransportAnswer) -> (step: BlobStep, isForward: Bool) {
    guard let count = answer.headers["upload-offset"].flatMap(Int64.init), (0...byteCount).contains(count)
    else {
      return (.failed(.fault(.other("the server does not say how much it has"), mayHaveArrived: true)), false)
    }
    let isForward = count > farthest
    if isForward { contradictions = 0 }
    farthest = max(farthest, count)
    offset = count
    progress(count, byteCount)
    return (count == byteCount ? .done : .more, isForward)
  }

  private func piece(from offset: Int64, _ url: String) async throws -> TransportRequest {
    let end: Int64
    var request = TransportRequest(method: "PUT", url: url)
    switch source {
    case .file(let path):
      end = byteCount
      request.body = .file(path: path, range: offset..<end)
    case .pieces(let count, let read):
      end = min(offset + Int64(count), byteCount)
      let bytes = try await read(offset, Int(end - offset))
      guard bytes.count == end - offset else { throw BackendError.integrity }
      request.body = .bytes(bytes)
    }
    request.headers = [.init("Content-Type", "application/octet-stream")]
    // A body without it begins anew.
    if offset > 0 || end < byteCount {
      request.headers.append(.init("Content-Range", "bytes \(offset)-\(end - 1)/\(byteCount)"))
    }
    request.timeout = nil
    let (progress, total) = (progress, byteCount)
    request.progress = { progress(min(offset + $0.sent, total), total) }
    return request
  }
}
