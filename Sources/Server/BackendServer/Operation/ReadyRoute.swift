import PalbeBackendCore
import PalbeWebServer

extension RouteTable {
  /// For load balancers: while the server drains, every route is refused, and so is this one; and it is while the files of the
  /// databases are gone.
  static func readyRoute(_ files: [FilePlace] = []) -> Route {
    Route(
      "GET", "/v1/ready", "ready",
      "204 while the server takes requests, 503 once it drains or its files are gone", access: .open,
      codes: ["unavailable"],
      service: .shell { (_) throws(APIError) in
        guard files.allSatisfy(\.isKept) else { throw APIError(.unavailable(.displaced)) }
        return HTTPResponse(status: 204)
      })
  }
}
