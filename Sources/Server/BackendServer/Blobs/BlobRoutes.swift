import PalbeBackendCore
import PalbeEventLoop
import PalbeUnits
import PalbeWebServer
import PalbeWire

/// The routes that give out addresses of blobs' bytes (4.2).
extension RouteTable {
  /// How long an address for a download holds.
  private static let addressTime: Int64 = 300

  /// - Parameter now: as of `BlobService`.
  static func blobRoutes(
    _ urls: BlobURLs, _ store: BlobStore, _ loop: BackendLoop, now: @escaping @Sendable () -> Int64
  ) -> [Route] {
    [
      Route(
        "POST", "/v1/groups/{group}/blobs", "createBlob",
        "Announces an attachment, and gets an address for its bytes",
        idempotency: .required, body: .json(.announcedBlob), answer: .blobView,
        codes: ["not_a_member", "chat_not_found", "attachment_too_large"],
        service: .backend(
          { (input) throws(APIError) in
            .createBlob(try input.id("group"), byteCount: input.body.integer("size") ?? 0)
          }, { response, _ in text(response, urls, now()) })),
      Route(
        "GET", "/v1/blobs/{blob}", "blob",
        "An address for an attachment's bytes, or for the rest of its upload",
        answer: .blobView, codes: ["not_a_member", "blob_not_found", "blob_expired"],
        service: .backend(
          { (input) throws(APIError) in .blob(try input.id("blob")) },
          { response, _ in text(response, urls, now()) }
        )),
      Route(
        "POST", "/v1/blobs/{blob}/complete", "completeBlob",
        "Makes an attachment whose bytes are there ready for others",
        answer: .blobView,
        codes: ["not_a_member", "forbidden", "blob_not_found", "blob_expired", "upload_incomplete"],
        service: .later { input, answer in
          guard let caller = input.caller, let id: BlobID = input.path.id("blob") else {
            return answer(.failure(APIError(.notSignedIn)))
          }
          complete(
            id, store, { text($0, urls, now()) }, { loop.ask(BackendCall($0, from: caller), answer: $1) },
            answer)
        }),
    ]
  }

  /// Who may is asked first, then whether the bytes are there.
  private static func complete(
    _ id: BlobID, _ store: BlobStore, _ text: @escaping @Sendable (BackendResponse) -> JSONText?,
    _ ask: @escaping @Sendable (BackendRequest, @escaping BackendLoop.Answer) -> Void,
    _ answer: @escaping Route.Answer
  ) {
    @Sendable func end(_ result: Result<BackendResponse, BackendFailure>) {
      answer(result.map { text($0) }.mapError { APIError($0) })
    }
    ask(.blob(id)) { result in
      guard case .success(.blob(let view)) = result, view.state == .pending else { return end(result) }
      store.state(of: id, byteCount: view.byteCount) { state in
        switch state {
        case .success(.whole(view.byteCount)): ask(.completeBlob(id), end)
        case .success(.partial(let count)): answer(.failure(APIError(.incomplete(count))))
        case .success(.whole), .success(.none): answer(.failure(APIError(.incomplete(0))))
        case .failure(let fault): answer(.failure(APIError(.storage(fault))))
        }
      }
    }
  }

  private static func text(_ response: BackendResponse, _ urls: BlobURLs, _ now: Int64) -> JSONText? {
    guard case .blob(let view) = response else { return nil }
    let isPending = view.state == .pending
    let end = view.expiresAt.seconds
    let expiry = isPending ? end : min(end, now + addressTime)
    let address = urls.address(
      .init(blob: view.id, operation: isPending ? .put : .get, byteCount: view.byteCount, expiry: expiry))
    return JSONWriter.object {
      $0.member("blob_id", view.id)
      $0.member("size", view.byteCount)
      $0.member("state", isPending ? "pending" : "ready")
      $0.member(isPending ? "put_url" : "get_url", address)
      $0.member("expires_at_ms", WallTime(microseconds: expiry * 1_000_000))
    }
  }
}

extension Shape.Record {
  fileprivate static let announcedBlob = Shape.Record(
    "AnnouncedBlob", [.required("size", .integer(1...1 << 40), "bytes of the encrypted attachment")])

  fileprivate static let blobView = Shape.Record(
    "Blob",
    [
      .required("blob_id", .blob, "the attachment"),
      .required("size", .natural, "bytes"),
      .required("state", .choice(["pending", "ready"]), "pending until the upload is complete"),
      .optional(
        "put_url", .text(upTo: 1_000), "where the bytes go; relative unless the server knows its public URL"),
      .optional("get_url", .text(upTo: 1_000), "where the bytes come from"),
      .required("expires_at_ms", .natural, "when the address is over"),
    ])
}

extension BlobService: BackendService.Part {
  package var name: String { "blobBytes" }
  package func owns(_ request: HTTPRequest) -> Bool { Self.owns(request) }
  package func respond(to request: HTTPRequest, with responder: HTTPResponder) -> Bool {
    answer(request, with: responder)
    return true
  }
}
