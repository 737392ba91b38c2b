import Foundation
import PalbeAccountsCore
import PalbeBackendCore
import PalbeCrypto
import PalbeServerClient
import PalbeUnits
import Testing

@testable import PalbeBackendServer

/// Every route, tried by who may not: the requests are made from the table, so that a new route cannot be forgotten.
@Suite("Access to every route", .serialized)
struct RouteAccessTests {
  private let rig: ServerRig
  private let table: RouteTable

  init() throws {
    rig = try ServerRig()
    let tokens = DeviceTokens(key: SymmetricKey(copying: [UInt8](repeating: 1, count: 32)))
    let blobs = RouteTable.blobRoutes(
      BlobURLs(key: [1]), rig.server.blobs, rig.server.loop, now: { 0 })
    table = RouteTable(
      devices: tokens,
      others: RouteTable.documentRoutes(tokens, others: blobs + RouteTable.accountRoutes(nil)))
  }

  /// A request that has the form of its route, and is about a group, a user, a device.
  private func request(
    _ route: Route, group: GroupID, mlsID: MLSGroupID, user: UserID, device: DeviceID, blob: String,
    by client: ServerClient
  ) -> (path: String, body: [String: Any]?) {
    let path =
      "/"
      + route.segments.map { segment in
        switch segment {
        case "{group}": group.text
        case "{user}": user.text
        case "{device}": device.text
        case "{blob}": blob
        default: String(segment)
        }
      }.joined(separator: "/")
    let query = route.query.filter(\.isRequired).map { "\($0.name)=1" }.joined(separator: "&")
    return (path + (query.isEmpty ? "" : "?" + query), body(route, mlsID, by: client))
  }

  private func body(_ route: Route, _ mlsID: MLSGroupID, by client: ServerClient) -> [String: Any]? {
    switch route.name {
    case "enrolDevice": client.enrolment()
    case "setPushToken": ["platform": "ios", "token": "00ff"]
    case "setCommsPrefs": ["share_presence": true]
    case "publishKeyPackages": ["key_packages": [String]()]
    case "createGroup": ["rfc_group_id": ServerClient.text(client.random.bytes(32)), "kind": "group"]
    case "commit": client.bundle(mlsID, 1)
    case "setRole": ["role": "admin"]
    case "reset":
      [
        "generation": 0, "rfc_group_id": ServerClient.text(client.random.bytes(32)),
        "initial_commit": client.bundle(mlsID, 0),
      ]
    case "sendMessage": client.message(mlsID, 1)
    case "acknowledge": ["up_to": 0]
    case "setNotifyScope": ["scope": "none"]
    case "markRead": ["seq": 1]
    case "createBlob": ["size": 10]
    default: nil
    }
  }

  private func code(
    _ route: Route, _ client: ServerClient, group: GroupID, mlsID: MLSGroupID, user: UserID,
    device: DeviceID, blob: String = "", headers: [(String, String)]? = nil
  ) throws -> String? {
    let (path, body) = request(
      route, group: group, mlsID: mlsID, user: user, device: device, blob: blob, by: client)
    let answer: HTTPConnection.Answer
    if let headers {
      var bytes: [UInt8]?
      if let body { bytes = Array(try JSONSerialization.data(withJSONObject: body)) }
      if bytes == nil, route.method == "POST" { bytes = [] }
      answer = try client.http.send(
        route.method, path,
        headers: headers + [("content-type", "application/json"), ("idempotency-key", "a")],
        body: bytes)
    } else {
      answer = try client.ask(route.method, path, body)
    }
    #expect(answer.headers["request-id"] != nil)
    if let code = answer.code {
      #expect(answer.status == OpenAPIDocument.status(of: code), "\(route.name): \(code)")
      let documented = OpenAPIDocument.codes(of: route).values.joined()
      #expect(documented.contains(code), "\(route.name) answers \(code), which is not in its table")
      return code
    }
    #expect(answer.status == 200 || answer.status == 204)
    return nil
  }

  @Test(
    "2.2, 4.2: a stranger, a forged, an expired and a revoked token, another's device, a revoked one, a former member, a weak role"
  )
  func everyRoute() throws {
    let (anna, ben, carl) = (try rig.device(), try rig.device(), try rig.device())
    let (group, mlsID) = try anna.found(with: [ben.user, carl.user])
    let blob = try #require(
      try anna.get("POST", "/v1/groups/\(group)/blobs", ["size": 10])["blob_id"] as? String)
    // Carl was a member.
    try carl.get("POST", "/v1/groups/\(group)/leave")
    let outsider = try rig.device()
    let expired = rig.client(anna.user)
    expired.accessToken = rig.sessions.signIn(anna.user, for: -1).0
    let revokedSession = rig.client(anna.user)
    rig.sessions.revoke(revokedSession.accessToken)
    let removed = try rig.device(outsider.user)
    try outsider.get("DELETE", "/v1/devices/\(removed.device!)")

    var seen: Set<String> = []
    for route in table.routes where route.access != .open {
      func ask(_ client: ServerClient, _ headers: [(String, String)]? = nil) throws -> String? {
        seen.insert(route.name)
        return try code(
          route, client, group: group, mlsID: mlsID, user: ben.user, device: client.device ?? ben.device!,
          blob: blob, headers: headers)
      }
      let own = anna.authentication
      #expect(try ask(rig.client(), []) == "not_signed_in", "\(route.name)")
      #expect(try ask(rig.client(), [("authorization", "Basic eDp5")]) == "not_signed_in", "\(route.name)")
      #expect(try ask(rig.client(), [("authorization", "Bearer forged")]) == "not_signed_in", "\(route.name)")
      #expect(try ask(expired) == "session_expired", "\(route.name)")
      #expect(try ask(revokedSession) == "session_expired", "\(route.name)")
      guard route.access == .device else { continue }
      #expect(try ask(rig.client()) == "device_not_enrolled", "\(route.name)")
      // Anna's session with a token of Ben's device, and with one that is nobody's.
      #expect(
        try ask(anna, [own[0], ben.authentication[1]]) == "device_not_enrolled", "\(route.name)")
      #expect(
        try ask(anna, [own[0], ("palbe-device", own[1].1.dropLast(2) + "AA")]) == "device_not_enrolled",
        "\(route.name)")
      #expect(try ask(removed) == "device_revoked", "\(route.name)")
      if route.parameters.contains("blob") {
        #expect(try ask(outsider) == "blob_not_found", "\(route.name)")
        #expect(try ask(carl) == "not_a_member", "\(route.name)")
        // Others see it when it is ready.
        #expect(try ask(ben) == "blob_not_found", "\(route.name)")
        #expect(try ask(anna) == (route.name == "blob" ? nil : "upload_incomplete"), "\(route.name)")
      }
      guard route.parameters.contains("group") else { continue }
      #expect(try ask(outsider) == "chat_not_found", "\(route.name)")
      #expect(try ask(carl) == "not_a_member", "\(route.name)")
    }
    #expect(seen == Set(table.routes.filter { $0.access != .open }.map(\.name)))

    // A member without the role.
    for (name, expected) in [("setRole", "forbidden"), ("reset", "forbidden")] {
      let route = table.routes.first { $0.name == name }!
      #expect(
        try code(route, ben, group: group, mlsID: mlsID, user: anna.user, device: ben.device!) == expected)
    }
    // Devices of others.
    for name in ["device", "revokeDevice", "setPushToken"] {
      let route = table.routes.first { $0.name == name }!
      #expect(
        try code(route, ben, group: group, mlsID: mlsID, user: anna.user, device: anna.device!)
          == "forbidden",
        "\(name)")
    }
    // And who may, may: nothing above was refused for its form.
    for route in table.routes where route.access == .device && route.method == "GET" {
      #expect(
        try code(route, anna, group: group, mlsID: mlsID, user: ben.user, device: anna.device!, blob: blob)
          == nil,
        "\(route.name)")
    }
  }
}
