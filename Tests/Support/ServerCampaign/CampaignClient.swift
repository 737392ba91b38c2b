import Foundation
import Glibc
import PalbeBackendCore
import PalbeServerClient
import PalbeUnits
import Synchronization

/// One device of the campaign, on a thread of its own. Whatever breaks, it asks again until it knows.
final class CampaignClient: @unchecked Sendable {
  let client: ServerClient
  var device: DeviceID { client.device! }
  private let campaign: Campaign
  private let email: String
  /// Rows that came and are not acknowledged, by id.
  private var pending: Set<Int64> = []
  private var epochs: [GroupID: Epoch] = [:]
  /// The socket of a client that fetches over it.
  private var socket: HTTPConnection?
  private let usesSocket: Bool
  private var frameCount = 0
  /// An earlier request and what it was answered with.
  private var earlier: (path: String, body: [String: Any]?, key: String, answer: [UInt8])?

  init(_ campaign: Campaign, _ client: ServerClient, email: String, usesSocket: Bool) {
    self.campaign = campaign
    self.client = client
    self.email = email
    self.usesSocket = usesSocket
  }

  private func below(_ bound: Int) -> Int { Int(client.random.next() % UInt64(max(1, bound))) }
  private func pick<T>(_ list: [T]) -> T { list[below(list.count)] }

  // MARK: Asking until there is an answer

  /// The answer, however often the server has to be asked.
  func ask(
    _ method: String, _ path: String, _ body: [String: Any]? = nil, key: String? = nil
  ) throws -> HTTPConnection.Answer {
    let key = key ?? client.newKey()
    for _ in 0..<3_000 {
      guard let answer = try? client.ask(method, path, body, key: key) else {
        campaign.broken()
        usleep(20_000)
        continue
      }
      switch answer.status {
      case 503, 429: usleep(20_000)
      case 401:
        client.accessToken = try Campaign.signIn(client.http, email).token
      case 500...:
        campaign.model.complain("\(method) \(path): \(answer.status)")
        return answer
      default: return answer
      }
    }
    throw ServerClient.Unexpected(description: "no answer to \(method) \(path) for a minute")
  }

  /// Asks over the socket, or nil when that broke: whether it was done is unknown then.
  private func askSocket(_ frame: [String: Any]) -> [String: Any]? {
    do {
      if socket == nil {
        let new = HTTPConnection(port: campaign.port)
        let answer = try new.upgrade("/v1/realtime", headers: client.authentication)
        if answer.status == 401 { client.accessToken = try Campaign.signIn(client.http, email).token }
        guard answer.status == 101 else { throw HTTPConnection.Broken() }
        socket = new
        _ = try exchange(new, ["type": "subscribe", "topic": "messaging:device:\(device)"])
      }
      guard let socket else { return nil }
      let reply = try exchange(socket, frame)
      guard reply["type"] as? String == "reply" else { throw HTTPConnection.Broken() }
      return reply
    } catch {
      campaign.broken()
      socket = nil
      usleep(20_000)
      return nil
    }
  }

  private func exchange(_ socket: HTTPConnection, _ frame: [String: Any]) throws -> [String: Any] {
    frameCount += 1
    var frame = frame
    frame["id"] = frameCount
    try socket.send(
      frame: String(decoding: try JSONSerialization.data(withJSONObject: frame), as: UTF8.self))
    while true {
      let text = try socket.nextFrame()
      let json = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] ?? [:]
      if json["id"] as? Int == frameCount { return json }
    }
  }

  // MARK: Operations

  func step() throws {
    switch below(100) {
    case 0..<45: try send()
    case 45..<60: try fetch(all: below(4) == 0)
    case 60..<74: try acknowledge()
    case 74..<84: try commit()
    case 84..<90: try again()
    case 90..<93: try read()
    case 93..<95: try packages()
    default: try look()
    }
  }

  private func send() throws {
    let (group, mlsID) = pick(campaign.groups)
    let epoch = epochs[group] ?? 1
    let message = client.message(mlsID, epoch, count: 20 + below(200))
    let path = "/v1/groups/\(group)/messages"
    let answer = try ask("POST", path, message)
    guard answer.status == 200, let sequence = answer.json["seq"] as? Int64 else {
      return refused(answer, group)
    }
    campaign.model.accepted(group, sequence, message["blob"] as? String ?? "", by: device)
    if below(8) == 0 {
      // The same message again is the first one.
      let again = try ask("POST", path, message)
      if again.json["seq"] as? Int64 != sequence || again.json["is_repeated"] as? Bool != true {
        campaign.model.complain(
          "\(group): the message at \(sequence) again gave \(again.status) \(again.json)")
      }
    }
  }

  /// Refusals that an honest client meets.
  private func refused(_ answer: HTTPConnection.Answer, _ group: GroupID) {
    switch answer.code {
    case "stale_epoch":
      campaign.model.stale()
      let details = answer.json["details"] as? [String: Any]
      epochs[group] = (details?["head_epoch"] as? Int).map { Epoch($0) }
    case "not_a_member", "chat_not_found", "forbidden", "commit_incomplete", "no_key_package": break
    default:
      campaign.model.complain("refused: \(answer.status) \(String(decoding: answer.body, as: UTF8.self))")
    }
  }

  private func page(after: Int64) throws -> (rows: [[String: Any]], hasMore: Bool) {
    var json: [String: Any]?
    if usesSocket {
      for _ in 0..<3_000 where json == nil {
        json = askSocket(["type": "fetch", "after": after, "limit": 100])
      }
    } else {
      let answer = try ask("GET", "/v1/queue?after=\(after)&limit=100")
      if answer.status == 200 { json = answer.json }
    }
    guard let json, let rows = json["rows"] as? [[String: Any]] else {
      throw ServerClient.Unexpected(description: "no queue for \(device)")
    }
    return (rows, json["has_more"] as? Bool ?? false)
  }

  /// Fetches from the beginning. What was there and is not acknowledged must come again.
  func fetch(all: Bool) throws {
    let (found, bound) = try rows { all || $0.isEmpty }
    let lost = pending.filter { $0 <= bound && !found.contains($0) }
    if !lost.isEmpty {
      campaign.model.complain("\(device): rows went without acknowledgement: \(lost.prefix(5))")
    }
    pending.formUnion(found)
  }

  /// Rows from the beginning on, page by page, as long as is wanted; and the last of them, where there are more.
  private func rows(
    while isWanted: (Set<Int64>) -> Bool = { _ in true }
  ) throws -> (found: Set<Int64>, bound: Int64) {
    var found: Set<Int64> = []
    var after: Int64 = 0
    var hasMore = true
    while hasMore, isWanted(found) {
      let page = try page(after: after)
      for row in page.rows { take(row, &found) }
      hasMore = page.hasMore
      after = page.rows.last?["id"] as? Int64 ?? after
    }
    return (found, hasMore ? after : .max)
  }

  private func take(_ row: [String: Any], _ found: inout Set<Int64>) {
    guard let id = row["id"] as? Int64 else { return campaign.model.complain("a row without an id") }
    if !found.insert(id).inserted {
      campaign.model.complain("\(device): the row \(id) came twice in one fetch")
    }
    switch row["kind"] as? String {
    case "message":
      guard let text = row["group_id"] as? String, let group = GroupID(text),
        let sequence = row["seq"] as? Int64, let blob = row["blob"] as? String
      else { return campaign.model.complain("a message without its fields: \(row)") }
      campaign.model.came(group, sequence, blob, to: device)
    case "welcome": campaign.model.welcomed(device, id)
    default: break
    }
  }

  private func acknowledge() throws {
    guard !pending.isEmpty else { return try fetch(all: true) }
    let sorted = pending.sorted()
    let gone: [Int64]
    let body: [String: Any]
    if below(2) == 0 {
      gone = Array(sorted.prefix(1 + below(sorted.count)))
      body = ["up_to": gone.last ?? 0]
    } else {
      gone = (0..<min(20, sorted.count)).map { _ in pick(sorted) }
      body = ["ids": gone]
    }
    if usesSocket {
      var frame = body
      frame["type"] = "ack"
      var reply: [String: Any]?
      for _ in 0..<3_000 where reply == nil { reply = askSocket(frame) }
      guard reply != nil else { throw ServerClient.Unexpected(description: "no acknowledgement") }
    } else {
      let answer = try ask("POST", "/v1/queue/ack", body)
      guard answer.status == 200 else { return campaign.model.complain("ack: \(answer.status)") }
    }
    pending.subtract(gone)
    if below(3) == 0 {
      // What was acknowledged does not come again, and everything else does.
      let found = try rows().found
      let back = found.intersection(gone)
      if !back.isEmpty {
        campaign.model.complain("\(device): acknowledged rows came again: \(back.prefix(5))")
      }
      let lost = pending.subtracting(found)
      if !lost.isEmpty {
        campaign.model.complain("\(device): other rows went with an ack: \(lost.prefix(5))")
      }
      pending = found
    }
  }

  private func commit() throws {
    let (group, mlsID) = pick(campaign.groups)
    let seen = try ask("GET", "/v1/groups/\(group)")
    guard seen.status == 200, let epoch = seen.json["epoch"] as? Int,
      let leaves = seen.json["leaves"] as? [[String: Any]],
      let members = seen.json["members"] as? [[String: Any]]
    else { return refused(seen, group) }
    epochs[group] = Epoch(epoch)
    let users = members.compactMap { ($0["user_id"] as? String).flatMap { UserID($0) } }
    var (adding, added, removing, removed): ([UserID], [DeviceID], [UserID], [DeviceID]) = ([], [], [], [])
    switch below(4) {
    case 0:
      let outside = campaign.users.filter { !users.contains($0) }
      guard !outside.isEmpty, users.count < 15 else { break }
      let user = pick(outside)
      let claim = try ask("POST", "/v1/users/\(user)/key-packages/claim")
      guard claim.status == 200 else { return refused(claim, group) }
      let packages = claim.json["key_packages"] as? [[String: Any]] ?? []
      adding = [user]
      added = packages.compactMap { ($0["device_id"] as? String).flatMap { DeviceID($0) } }
    case 1:
      let own = members.first { $0["user_id"] as? String == client.user.text }
      guard own?["role"] as? String == "owner", users.count > 3 else { break }
      let user = pick(users.filter { $0 != client.user })
      removing = [user]
      removed = leaves.filter { $0["user_id"] as? String == user.text }
        .compactMap { ($0["device_id"] as? String).flatMap { DeviceID($0) } }
    default: break
    }
    let next = (leaves.compactMap { $0["index"] as? Int }.max() ?? 0) + 1
    let bundle = client.bundle(
      mlsID, Epoch(epoch), adding: adding, leaves: added, from: next, removing: removing, leavesOut: removed)
    let key = client.newKey()
    let path = "/v1/groups/\(group)/commits"
    let answer = try ask("POST", path, bundle, key: key)
    guard answer.status == 200, let sequence = answer.json["seq"] as? Int64 else {
      return refused(answer, group)
    }
    campaign.model.committed(
      group, sequence, Epoch(epoch), bundle["commit"] as? String ?? "", by: device, adding: added,
      removing: removed)
    epochs[group] = Epoch(epoch + 1)
    earlier = (path, bundle, key, answer.body)
  }

  /// A request whose answer may have been lost, once more: the first answer comes.
  private func again() throws {
    guard let earlier else { return try commit() }
    let answer = try ask("POST", earlier.path, earlier.body, key: earlier.key)
    if answer.body != earlier.answer {
      campaign.model.complain(
        "\(earlier.path) again: \(answer.status) \(String(decoding: answer.body, as: UTF8.self)), and before "
          + String(decoding: earlier.answer, as: UTF8.self))
    }
  }

  private func read() throws {
    let (group, _) = pick(campaign.groups)
    let before = try ask("GET", "/v1/groups/\(group)/unread")
    guard before.status == 200, let head = before.json["group_max_seq"] as? Int64 else {
      return refused(before, group)
    }
    let sequence = Int64(below(Int(head) + 2))
    let answer = try ask("POST", "/v1/groups/\(group)/read", ["seq": sequence])
    guard answer.status == 204 else { return refused(answer, group) }
  }

  private func packages() throws {
    let count = try ask("GET", "/v1/key-packages/count")
    if count.status != 200 { campaign.model.complain("key packages: \(count.status)") }
  }

  private func look() throws {
    let groups = try ask("GET", "/v1/groups?limit=100")
    if groups.status != 200 { campaign.model.complain("groups: \(groups.status)") }
  }

  /// The newest sequence of a group; nil for who is not in it.
  func head(of group: GroupID) throws -> LogSequence? {
    let answer = try ask("GET", "/v1/groups/\(group)")
    return answer.status == 200 ? answer.json["head_seq"] as? Int64 : nil
  }
}
