import PalbeWebServer

extension RouteTable {
  /// For load balancers: while the server drains, every route is refused, and so is this one.
  static let readyRoute = Route(
    "GET", "/v1/ready", "ready", "204 while the server takes requests, 503 once it drains", access: .open,
    codes: ["unavailable"], service: .shell { _ in HTTPResponse(status: 204) })
}
