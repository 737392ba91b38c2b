import Foundation
import Observation
import PalbeSDKKit
import PalbeTestKit
import PalbeUnits
import Testing

@testable import Palbase
@testable import PalbeChatCore
@testable import PalbeMessaging

/// A user's session fed by hand: what a shell tells, without one.
@MainActor final class ModelRig {
  let folder: TemporaryFolder
  let host: PalbaseHost
  let session: MessagingSession
  let messenger: Messenger
  let me: UserID
  let peer: UserID
  private var random = RandomSource(seed: 11)
  private var clock: Int64 = 1_800_000_000_000_000
  private var numbers: [ChatID: Int64] = [:]

  init() throws {
    folder = try TemporaryFolder()
    let keys = ["ServerURL": "https://palbe.test", "DataFolder": "data"]
    try PropertyListSerialization.data(fromPropertyList: keys, format: .xml, options: 0)
      .write(to: URL(fileURLWithPath: folder.path("config.plist")))
    let time = VirtualTimebase().timebase
    let transport = FakeTransport(server: FakeServer { time.wallMilliseconds() })
    host = PalbaseHost(
      surroundings: Settings.Surroundings(
        environment: ["PALBE_CONFIG": folder.path("config.plist")], resourceFolder: nil,
        executable: folder.path("bin/app"), home: folder.path("home")),
      time: time, transport: { _ in transport },
      connector: { _ in WebSocketConnector(trustedCertificateFile: nil) })
    var random = self.random
    me = UserID(at: WallTime(microseconds: 1), using: &random)
    peer = UserID(at: WallTime(microseconds: 2), using: &random)
    self.random = random
    messenger = .of(host)
    session = MessagingSession(me, try host.runtime(), messenger)
  }

  var list: ChatListStore { messenger.list }

  func now() -> WallTime {
    clock += 1_000_000
    return WallTime(microseconds: clock)
  }

  func user() -> UserID { UserID(at: now(), using: &random) }

  func group() -> GroupID { GroupID(at: now(), using: &random) }

  /// A chat as a shell would tell of it.
  func snapshot(
    kind: PalbeChatCore.ChatKind = .direct, state: PalbeChatCore.ChatState = .active,
    members: [(UserID, PalbeChatCore.ChatRole)]? = nil
  ) -> ChatSnapshot {
    let id = ChatID(at: now(), using: &random)
    var summary = ChatSummary(chat: id.bytes, kind: kind, state: state, createdAt: now())
    if state != .draft { summary.group = group() }
    if kind == .direct { summary.peer = peer }
    var snapshot = ChatSnapshot(id: id, summary: summary, head: nil)
    snapshot.members = (members ?? [(me, .owner), (peer, .member)]).map {
      ChatMemberSnapshot(user: $0.0, role: $0.1)
    }
    return snapshot
  }

  /// A chat that the session knows, its transcript read and empty.
  func chat(_ snapshot: ChatSnapshot) throws -> PalbeMessaging.Chat {
    session.take([.chats([snapshot], isAll: false)])
    let chat = try #require(session.known(snapshot.id))
    chat.isLoaded = true
    chat.wanted = [.transcript, .receipts, .trust, .acknowledgements]
    return chat
  }

  /// A draft that a store has.
  func draft() throws -> PalbeMessaging.Chat { try draftAndSnapshot().0 }

  func draftAndSnapshot() throws -> (PalbeMessaging.Chat, ChatSnapshot) {
    let chat = PalbeMessaging.Chat(.direct(peer: peer.text), id: "draft_x", at: Date(now()), messenger)
    var snapshot = snapshot(kind: .direct, state: .draft)
    let stranger = user()
    snapshot.summary.peer = stranger
    #expect(session.expect(chat, stranger.text))
    session.take([.chats([snapshot], isAll: false)])
    #expect(session.known(snapshot.id) === chat)
    return (chat, snapshot)
  }

  func row(
    _ text: String, seq: Int64? = nil, from sender: UserID? = nil, id: ClientMessageID? = nil
  ) -> Row {
    let now = now()
    return Row(
      id: id ?? ClientMessageID(at: now, using: &random),
      position: seq.flatMap { TranscriptPosition(seq: $0) },
      sender: DeviceName(user: sender ?? me, device: DeviceID(at: now, using: &random)), kind: .text,
      text: text, mentions: [], attachment: nil, caption: nil, reply: nil, reactions: [], isEdited: false,
      isDeleted: false, sentAt: now, expiresAt: nil, delivery: seq == nil ? .pending : .sent,
      epoch: seq == nil ? 0 : 3, replyReference: nil)
  }
}

extension Identifiable {
  /// What a list tells rows apart by.
  var identity: ID { id }
}

/// Counts how often somebody who observes would look again.
@MainActor final class Looks {
  private(set) var count = 0
  private let look: @MainActor () -> Void

  init(_ look: @escaping @MainActor () -> Void) {
    self.look = look
    observe()
  }

  private func observe() {
    withObservationTracking {
      look()
    } onChange: { [weak self] in
      MainActor.assumeIsolated { self?.count += 1 }
    }
  }

  /// How often since the last time; looks again.
  func take() -> Int {
    // Who has not been told yet still observes.
    defer {
      if count > 0 { observe() }
      count = 0
    }
    return count
  }
}
