import Foundation
import Glibc
import PalbeChatClient
import PalbeTestKit
import PalbeUnits

/// How long and how rough.
public struct ChatCampaignSettings: Sendable {
  public var seed: UInt64 = 1
  public var clientCount = 6
  /// Seconds of traffic with kills; then all must come to rest.
  public var seconds = 30
  /// Seconds between two kills, on average.
  public var killInterval = 2.0
  /// Seconds that may pass until everybody has everything.
  public var patience = 180
  /// Actions of a client before it has to be told again; keeps a chat below what a device keeps.
  public var actionInterval = 0.25
  public init() {}
}

/// What became of it.
public struct ChatCampaignReport: Sendable {
  public var messages = 0
  public var actions = 0
  public var clientKills = 0
  public var serverKills = 0
  /// Seconds until everybody had everything.
  public var settling = 0.0
  /// What must not be. Empty: all is well.
  public var complaints: [String] = []
}

/// Clients over the SDK, each a process of its own, and a real server; all of them are killed at random. In the end nothing
/// that was durable is lost, nothing is there twice, and every transcript is the same in its order and in each row.
public final class ChatCampaign {
  private let settings: ChatCampaignSettings
  private let folder: TemporaryFolder
  private let server: DeliveryServer
  private var members: [CampaignMember] = []
  private var random: RandomSource
  private let log: (String) -> Void

  /// - Parameter log: hears what happens.
  public init(_ settings: ChatCampaignSettings, log: @escaping (String) -> Void = { _ in }) throws {
    self.settings = settings
    self.log = log
    random = RandomSource(seed: settings.seed)
    folder = try TemporaryFolder()
    server = try DeliveryServer(folder: folder.path("server"))
  }

  private func below(_ bound: Int) -> Int { Int(random.next() % UInt64(max(1, bound))) }

  public func run() throws -> ChatCampaignReport {
    var report = ChatCampaignReport()
    for index in 0..<settings.clientCount {
      members.append(
        CampaignMember(
          index, server: server.address, folder: folder.path("m\(index)"), seed: settings.seed,
          interval: settings.actionInterval))
    }
    defer { for member in members { member.kill() } }
    for member in members { try member.start() }
    let users = try members.map { try $0.value(of: "user", seconds: 60) }
    log("\(users.count) clients, \(server.address)")
    try found(users)
    for member in members { member.tell("go") }
    let end = Date() + TimeInterval(settings.seconds)
    while Date() < end {
      usleep(UInt32(1e6 * settings.killInterval * (0.2 + 1.6 * Double(below(1_000)) / 1_000)))
      guard Date() < end else { break }
      if below(4) == 0 {
        server.kill()
        usleep(UInt32(below(400_000)))
        try server.startAgain()
        report.serverKills += 1
      } else {
        let member = members[below(members.count)]
        member.kill()
        usleep(UInt32(below(400_000)))
        try member.start()
        member.tell("go")
        report.clientKills += 1
      }
    }
    log("\(report.clientKills) clients and \(report.serverKills) servers were killed; now all come to rest")
    for member in members { member.tell("stop") }
    let start = Date()
    let states = try settle()
    report.settling = Date().timeIntervalSince(start)
    judge(states, &report)
    for member in members { member.end() }
    let told = server.stop()
    if told.code != 0 {
      report.complaints.append("the server ended with \(told.code): \(told.errors.suffix(2_000))")
    }
    return report
  }

  /// The first client founds a group of all, one of the first half, and a chat with each of the next two.
  private func found(_ users: [String]) throws {
    let founder = members[0]
    let half = users[..<max(2, users.count / 2)]
    founder.tell("group all " + users.dropFirst().joined(separator: " "))
    founder.tell("group half " + half.dropFirst().joined(separator: " "))
    for user in users.dropFirst().prefix(2) { founder.tell("direct \(user)") }
    let chats = 2 + min(2, users.count - 1)
    for _ in 0..<chats { _ = try founder.value(of: "founded", seconds: 60) }
    for member in members { _ = try member.value(of: "ready", seconds: 60) }
  }

  /// Asks for everybody's transcripts until they are complete and the same, or it takes too long.
  private func settle() throws -> [CampaignState] {
    let end = Date() + TimeInterval(settings.patience)
    var states: [CampaignState] = []
    while true {
      states = try members.map { try $0.state() }
      if CampaignState.complaints(states).isEmpty || Date() > end { return states }
      usleep(500_000)
    }
  }

  private func judge(_ states: [CampaignState], _ report: inout ChatCampaignReport) {
    report.complaints += CampaignState.complaints(states)
    report.messages =
      Set(states.flatMap { $0.chats.flatMap { chat in chat.value.map { "\(chat.key) \($0.id)" } } }).count
    report.actions = states.reduce(0) { $0 + $1.actions }
    for member in members { report.complaints += member.complaints }
  }
}

/// What one client has in the end.
struct CampaignState {
  struct Entry: Equatable {
    var seq: String
    var id: String
    /// Sender, text, edits, deletion, reactions.
    var content: String
    var isPending: Bool
  }
  var index: Int
  /// Rows by the chat's name at the server, in their order.
  var chats: [String: [Entry]] = [:]
  /// What the client noted before it went on: chat and text.
  var noted: [(chat: String, text: String)] = []
  var actions = 0

  static func complaints(_ states: [CampaignState]) -> [String] {
    var found: [String] = []
    var reference: [String: (index: Int, rows: [Entry])] = [:]
    for state in states {
      for (chat, rows) in state.chats.sorted(by: { $0.key < $1.key }) {
        for row in rows where row.isPending {
          found.append("client \(state.index): '\(row.content)' is still pending")
        }
        let ids = rows.map(\.id)
        if Set(ids).count != ids.count {
          found.append("client \(state.index): a row of \(chat) is there twice")
        }
        if rows.map({ Int64($0.seq) ?? .max }) != rows.map({ Int64($0.seq) ?? .max }).sorted() {
          found.append("client \(state.index): \(chat) is not in the server's order")
        }
        guard let other = reference[chat] else {
          reference[chat] = (state.index, rows)
          continue
        }
        if let difference = difference(other.rows, rows) {
          found.append("clients \(other.index) and \(state.index) differ in \(chat): \(difference)")
        }
      }
      for (chat, text) in state.noted {
        let count = state.chats[chat, default: []].filter { $0.content.contains("'\(text)'") }.count
        if count != 1 { found.append("client \(state.index): '\(text)' in \(chat) is there \(count) times") }
      }
    }
    return Array(found.prefix(20))
  }

  private static func difference(_ left: [Entry], _ right: [Entry]) -> String? {
    for (one, two) in zip(left, right) where one != two {
      return "\(one.seq) \(one.content) and \(two.seq) \(two.content)"
    }
    return left.count == right.count ? nil : "\(left.count) and \(right.count) rows"
  }
}
