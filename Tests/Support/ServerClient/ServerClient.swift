import Foundation
import PalbeBackendCore
import PalbeBackendKit
import PalbeUnits
import PalbeWire

/// One device of one user at a real server, speaking its HTTP interface. For one thread.
public final class ServerClient {
  public let http: HTTPConnection
  public let user: UserID
  public var accessToken: String
  public private(set) var device: DeviceID?
  public private(set) var deviceToken: String?
  public var random: RandomSource
  private var keyCount = 0

  /// An answer of another kind than the request's.
  public struct Unexpected: Error, CustomStringConvertible {
    public let description: String
    public init(description: String) { self.description = description }
  }

  /// A client that has not enrolled.
  public init(port: UInt16, user: UserID, accessToken: String, seed: UInt64) {
    http = HTTPConnection(port: port)
    self.user = user
    self.accessToken = accessToken
    random = RandomSource(seed: seed)
  }

  /// Signs in, and enrols a device.
  public static func signedIn(
    port: UInt16, _ email: String, _ password: String, seed: UInt64
  ) throws -> ServerClient {
    let body = try JSONSerialization.data(withJSONObject: ["email": email, "password": password])
    let answer = try HTTPConnection(port: port).send(
      "POST", "/v1/auth/sign-in", headers: [("content-type", "application/json")], body: [UInt8](body))
    guard let user = (answer.json["user_id"] as? String).flatMap({ UserID($0) }),
      let token = answer.json["access_token"] as? String
    else { throw Unexpected(description: "sign-in: \(answer.status) \(answer.code ?? "")") }
    let client = ServerClient(port: port, user: user, accessToken: token, seed: seed)
    try client.enrol()
    return client
  }

  /// Another connection of the same device.
  public init(_ other: ServerClient, port: UInt16) {
    http = HTTPConnection(port: port)
    user = other.user
    accessToken = other.accessToken
    device = other.device
    deviceToken = other.deviceToken
    random = RandomSource(seed: other.random.next())
  }

  // MARK: Requests

  /// The headers that authenticate.
  public var authentication: [(String, String)] {
    [("authorization", "Bearer \(accessToken)")] + (deviceToken.map { [("palbe-device", $0)] } ?? [])
  }

  /// One request. A POST without `key` gets a new one.
  public func ask(
    _ method: String, _ path: String, _ body: [String: Any]? = nil, key: String? = nil
  ) throws -> HTTPConnection.Answer {
    var headers = authentication
    if method == "POST" { headers.append(("idempotency-key", key ?? newKey())) }
    var bytes: [UInt8]? = method == "POST" ? [] : nil
    if let body {
      headers.append(("content-type", "application/json"))
      bytes = Array(try JSONSerialization.data(withJSONObject: body, options: .sortedKeys))
    }
    return try http.send(method, path, headers: headers, body: bytes)
  }

  /// An answer that must be 200 or 204.
  @discardableResult
  public func get(
    _ method: String, _ path: String, _ body: [String: Any]? = nil, key: String? = nil
  ) throws -> [String: Any] {
    let answer = try ask(method, path, body, key: key)
    guard answer.status == 200 || answer.status == 204 else {
      throw Unexpected(
        description: "\(method) \(path): \(answer.status) \(String(decoding: answer.body, as: UTF8.self))")
    }
    return answer.json
  }

  /// A new idempotency key.
  public func newKey() -> String {
    keyCount += 1
    return "k\(keyCount)-\(Hex.encode(random.bytes(8)))"
  }

  // MARK: What an honest client does

  /// Makes up a device and enrols it.
  public func enrol(packages: Int = 4) throws {
    let json = try get("POST", "/v1/devices", enrolment(packages: packages))
    guard let text = json["device_id"] as? String, let id = DeviceID(text),
      let token = json["device_token"] as? String
    else { throw Unexpected(description: "\(json)") }
    device = id
    deviceToken = token
  }

  /// The body of an enrolment.
  public func enrolment(packages: Int = 4) -> [String: Any] {
    let key = random.bytes(32)
    let name = DeviceID(
      at: WallTime(microseconds: Int64(Date().timeIntervalSince1970 * 1e6)), using: &random)
    return [
      "device_id": name.text, "signature_key": Self.text(key), "platform": "linux",
      "key_packages": (0..<packages).map { _ in Self.text(package(key, of: name)) },
      "last_resort": Self.text(package(key, of: name, isLastResort: true)),
    ]
  }

  public func package(_ signatureKey: [UInt8], of device: DeviceID, isLastResort: Bool = false) -> [UInt8] {
    Wire.keyPackage(
      initKey: random.bytes(32), signatureKey: signatureKey, user: user, device: device,
      notAfter: UInt64(Date().timeIntervalSince1970) + 90 * 86_400, isLastResort: isLastResort)
  }

  /// A group with other users; its ids.
  public func found(with users: [UserID]) throws -> (group: GroupID, mlsID: MLSGroupID) {
    let id = MLSGroupID(random.bytes(32))
    let leaves = try users.flatMap { try claim($0) }
    var body: [String: Any] = ["rfc_group_id": Self.text(id.bytes), "kind": "group"]
    if leaves.isEmpty {
      body["group_info"] = Self.text(Wire.groupInfo(id, 0))
    } else {
      body["initial_commit"] = bundle(id, 0, adding: users, leaves: leaves, from: 1)
    }
    let json = try get("POST", "/v1/groups", body)
    guard let text = json["group_id"] as? String, let group = GroupID(text) else {
      throw Unexpected(description: "\(json)")
    }
    return (group, id)
  }

  /// One device of each key package that a user has.
  public func claim(_ user: UserID) throws -> [DeviceID] {
    let json = try get("POST", "/v1/users/\(user)/key-packages/claim")
    return (json["key_packages"] as? [[String: Any]] ?? []).compactMap {
      ($0["device_id"] as? String).flatMap { DeviceID($0) }
    }
  }

  /// The body of a commit.
  /// - Parameter index: of the first new leaf.
  public func bundle(
    _ id: MLSGroupID, _ epoch: Epoch, adding users: [UserID] = [], leaves: [DeviceID] = [],
    from index: Int = 1, removing removed: [UserID] = [], leavesOut: [DeviceID] = []
  ) -> [String: Any] {
    var body: [String: Any] = [
      "epoch": epoch, "commit": Self.text(Wire.commit(id, epoch, random.bytes(24))),
      "group_info": Self.text(Wire.groupInfo(id, epoch + 1)),
      "added_users": users.map(\.text), "removed_users": removed.map(\.text),
      "added_leaves": leaves.enumerated().map {
        ["device_id": $1.text, "index": index + $0] as [String: Any]
      },
      "removed_leaves": leavesOut.map(\.text),
    ]
    if !leaves.isEmpty { body["welcome"] = Self.text(Wire.welcome(random.bytes(16))) }
    return body
  }

  /// The body of a message.
  public func message(_ id: MLSGroupID, _ epoch: Epoch, count: Int = 40) -> [String: Any] {
    let name = ClientMessageID(
      at: WallTime(microseconds: Int64(Date().timeIntervalSince1970 * 1e6)), using: &random)
    return [
      "epoch": epoch, "client_msg_id": name.text,
      "blob": Self.text(Wire.application(id, epoch, random.bytes(count))),
    ]
  }

  /// Bytes as they stand in JSON.
  public static func text(_ bytes: [UInt8]) -> String { Base64.encode(bytes, alphabet: .url, padded: false) }
}
