import Glibc
import PalbeBackendCore
import PalbeEventLoop
import PalbeUnits
import PalbeWebServer

/// Why a request about a blob's bytes is refused, with the code of the errors table.
package enum BlobRefusal: Error, Hashable, Sendable {
  /// The address was not given out by this server, or for something else.
  case badAddress
  /// The address is over: ask for another one.
  case addressExpired
  case notFound
  case methodNotAllowed
  /// More bytes than were announced, or a range beyond them.
  case tooLarge(limit: Int64)
  /// A body that does not fit to its headers.
  case malformed(String)
  /// The piece does not begin where the one before ended.
  case offset(Int64)
  /// Not all bytes are there.
  case incomplete(Int64)
  case rangeNotSatisfiable(count: Int64)
  /// A newer upload of this blob goes on.
  case superseded
  case storage(BlobFault)
}

/// Answers requests for `/v1/blob-bytes/`: uploads that can go on where they were cut, downloads of any range.
///
/// `PUT` takes the whole body, or with `Content-Range: bytes a-b/n` the piece that begins where the one before ended; 201
/// when all is there and durable, 200 with `Upload-Offset` when more is to come. `HEAD` on the address for `PUT` tells
/// `Upload-Offset`. `GET` and `HEAD` on the other address are as RFC 9110 has them, with `Range` and `If-Range`.
package final class BlobService: Sendable {
  private let store: BlobStore
  private let urls: BlobURLs
  private let now: @Sendable () -> Int64
  private let refuse: @Sendable (BlobRefusal, HTTPRequest) -> HTTPResponse

  /// - Parameters:
  ///   - now: the time by which addresses are over, in seconds since 1970.
  ///   - refuse: how a refusal is told.
  package init(
    store: BlobStore, urls: BlobURLs, now: @escaping @Sendable () -> Int64,
    refuse: @escaping @Sendable (BlobRefusal, HTTPRequest) -> HTTPResponse
  ) {
    self.store = store
    self.urls = urls
    self.now = now
    self.refuse = refuse
  }

  /// Whether a request is for bytes of blobs.
  package static func owns(_ request: HTTPRequest) -> Bool { request.path.hasPrefix(BlobURLs.prefix) }

  private func grant(of request: HTTPRequest) throws(BlobRefusal) -> BlobURLs.Grant {
    guard let grant = urls.grant(of: request) else { throw .badAddress }
    switch (request.method, grant.operation) {
    case ("PUT", .put), ("HEAD", .put), ("GET", .get), ("HEAD", .get): break
    default: throw .methodNotAllowed
    }
    guard grant.expiry > now() else { throw .addressExpired }
    return grant
  }

  // MARK: Uploads

  /// Decides on a body before anything of it is read.
  package func body(
    of request: HTTPRequest, byteCount: Int64, responder: HTTPResponder
  ) -> HTTPBodyDecision {
    do throws(BlobRefusal) {
      let grant = try grant(of: request)
      guard request.method == "PUT" else { throw .methodNotAllowed }
      let offset = try offset(of: request, byteCount, grant)
      return .stream(
        BlobSink(
          grant.blob, byteCount: grant.byteCount, from: offset, store: store,
          resume: { responder.resumeBody() },
          answer: { [self] outcome in responder.send(answer(outcome, grant, request)) }))
    } catch { return .refuse(refuse(error, request)) }
  }

  /// Where the body belongs; nil begins anew.
  private func offset(
    of request: HTTPRequest, _ byteCount: Int64, _ grant: BlobURLs.Grant
  ) throws(BlobRefusal) -> Int64? {
    guard let header = request.header("content-range") else {
      guard byteCount <= grant.byteCount else { throw .tooLarge(limit: grant.byteCount) }
      return nil
    }
    guard let part = HTTPContentRange(header), part.count ?? grant.byteCount == grant.byteCount,
      Int64(part.range.count) == byteCount
    else { throw .malformed("Content-Range") }
    guard part.range.upperBound <= grant.byteCount else { throw .tooLarge(limit: grant.byteCount) }
    return part.range.lowerBound
  }

  private func answer(
    _ outcome: BlobSink.Outcome, _ grant: BlobURLs.Grant, _ request: HTTPRequest
  ) -> HTTPResponse {
    switch outcome {
    case .whole: Self.offset(grant.byteCount, of: grant, request, status: 201)
    case .partial(let count): Self.offset(count, of: grant, request, status: 200)
    case .superseded: refuse(.superseded, request)
    case .failed(.offset(let count)): refuse(.offset(count), request)
    case .failed(.tooLong): refuse(.tooLarge(limit: grant.byteCount), request)
    case .failed(let fault): refuse(.storage(fault), request)
    }
  }

  private static func offset(
    _ count: Int64, of grant: BlobURLs.Grant, _ request: HTTPRequest, status: Int
  ) -> HTTPResponse {
    let headers = [
      HTTPRequest.Field("upload-offset", "\(count)"), .init("upload-length", "\(grant.byteCount)"),
    ]
    return RequestIDs.labelled(HTTPResponse(status: status, headers: headers), request)
  }

  // MARK: Everything else

  /// Answers a request without a body, now or later.
  package func answer(_ request: HTTPRequest, with responder: HTTPResponder) {
    do throws(BlobRefusal) {
      let grant = try grant(of: request)
      guard request.method != "PUT" else { throw .malformed("Content-Length") }
      grant.operation == .put ? tell(grant, request, responder) : send(grant, request, responder)
    } catch { responder.send(refuse(error, request)) }
  }

  private func tell(_ grant: BlobURLs.Grant, _ request: HTTPRequest, _ responder: HTTPResponder) {
    store.state(of: grant.blob, byteCount: grant.byteCount) { [self] result in
      switch result {
      case .success(.none): responder.send(Self.offset(0, of: grant, request, status: 200))
      case .success(.partial(let count)), .success(.whole(let count)):
        responder.send(Self.offset(count, of: grant, request, status: 200))
      case .failure(let fault): responder.send(refuse(.storage(fault), request))
      }
    }
  }

  private func send(_ grant: BlobURLs.Grant, _ request: HTTPRequest, _ responder: HTTPResponder) {
    store.run(for: grant.blob) { [self] in
      do throws(BlobFault) {
        let (descriptor, count) = try store.files.open(grant.blob)
        // Cut, or grown: who reads it could not tell until all of it is there.
        guard count == grant.byteCount else {
          close(descriptor)
          throw .damaged
        }
        let source = { offset in BlobSource(grant.blob, descriptor, from: offset, store: self.store) }
        responder.send(
          Self.answer(grant.blob, count, request, source).map { RequestIDs.labelled($0, request) }
            ?? unsatisfiable(count, request))
      } catch {
        // An address is given out only for bytes that are there. Where they are not, they were let go meanwhile, or lost.
        if error != .missing {
          store.note(error)
        } else if store.isLost(grant.blob) {
          store.note(.damaged)
        }
        responder.send(refuse(error == .missing ? .notFound : .storage(error), request))
      }
    }
  }

  /// RFC 9110 §15.5.17: with how many bytes there are.
  private func unsatisfiable(_ count: Int64, _ request: HTTPRequest) -> HTTPResponse {
    var response = refuse(.rangeNotSatisfiable(count: count), request)
    response.headers.append(.init("content-range", "bytes */\(count)"))
    return response
  }

  /// Nil for a range that is not there. The source takes the descriptor over in every case.
  private static func answer(
    _ blob: BlobID, _ count: Int64, _ request: HTTPRequest, _ source: (Int64) -> BlobSource
  ) -> HTTPResponse? {
    // A blob's bytes never change.
    let tag = "\"\(blob.text)\""
    let holds = request.header("if-range").map { $0 == tag } ?? true
    var headers = [
      HTTPRequest.Field("content-type", "application/octet-stream"), .init("accept-ranges", "bytes"),
      .init("etag", tag),
    ]
    switch HTTPRange(holds ? request.header("range") : nil, count: count) {
    case .whole: return HTTPResponse(status: 200, headers: headers, source: source(0), byteCount: count)
    case .part(let range):
      headers.append(.init("content-range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(count)"))
      return HTTPResponse(
        status: 206, headers: headers, source: source(range.lowerBound), byteCount: Int64(range.count))
    case .unsatisfiable:
      _ = source(0)
      return nil
    }
  }
}
