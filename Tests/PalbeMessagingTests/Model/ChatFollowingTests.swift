import Foundation
import PalbeTestKit
import PalbeUnits
import Testing

@testable import Palbase
@testable import PalbeChatCore
@testable import PalbeMessaging

private typealias Chat = PalbeMessaging.Chat
private typealias ChatRole = PalbeMessaging.ChatRole
private typealias NotifyScope = PalbeMessaging.NotifyScope

@MainActor @Suite("A chat follows what it is told")
struct ChatFollowingTests {
  private let rig: ModelRig
  private let first: ChatSnapshot
  private let chat: Chat

  init() throws {
    rig = try ModelRig()
    first = rig.snapshot()
    chat = try rig.chat(first)
  }

  private func tell(_ changes: TranscriptChange...) { rig.session.take([.transcript(first.id, changes)]) }
  private func tell(_ change: (inout ChatSnapshot) -> Void) {
    var snapshot = chat.snapshot ?? first
    change(&snapshot)
    rig.session.take([.chats([snapshot], isAll: false)])
  }

  @Test("S0-26: a property that is read is looked at again when it changes, and only then")
  func observation() {
    let unread = Looks { [chat] in _ = chat.unreadCount }
    let messages = Looks { [chat] in _ = chat.messages }
    tell { $0.summary.unreadCount = 3 }
    #expect(chat.unreadCount == 3 && unread.take() == 1 && messages.take() == 0)
    // The same again, and something else, are no change of it.
    tell { $0.summary.unreadCount = 3 }
    tell { $0.summary.readUpTo = 5 }
    #expect(unread.take() == 0 && messages.take() == 0 && chat.readUpTo == 5)
    let row = rig.row("hello", seq: 1, from: rig.peer)
    tell(.inserted(row))
    #expect(messages.take() == 1 && unread.take() == 0)
    // A change of what is not shown is no change.
    tell(.updated(rig.row("elsewhere", seq: 900)))
    tell(.removed(rig.row("elsewhere", seq: 901).id))
    #expect(messages.take() == 0)
  }

  @Test("S0-49, S0-66: messages are equal by id, and an edit shows all the same")
  func edits() {
    var row = rig.row("one", seq: 1)
    tell(.inserted(row))
    let before = chat.messages[0]
    let looks = Looks { [chat] in _ = chat.messages.first?.text }
    row.text = "two"
    row.isEdited = true
    tell(.updated(row))
    #expect(looks.take() == 1)
    #expect(chat.messages[0] == before && chat.messages[0].text == "two" && before.text == "one")
    #expect(chat.messages[0].isEdited)
  }

  @Test("S3-13, S3-17: pending, failed, sent: one row, whose id stays")
  func optimistic() {
    var row = rig.row("hello")
    tell(.inserted(row))
    #expect(chat.messages.map(\.delivery) == [.pending] && chat.messages[0].serverSeq == .max)
    // Neither tick shows while it has no place (S0-91).
    #expect(!(chat.messages[0].serverSeq <= chat.deliveredUpTo))
    row.delivery = .failed(code: "no_key_package")
    tell(.updated(row))
    #expect(chat.messages.map(\.delivery) == [.failed(.noKeyPackage)])
    row.delivery = .sent
    row.position = TranscriptPosition(seq: 4)
    tell(.updated(row))
    #expect(chat.messages.map(\.delivery) == [.sent] && chat.messages[0].serverSeq == 4)
    #expect(chat.messages[0].id == row.id.text && chat.messages[0].isOutgoing)
  }

  @Test("S0-28: a group's name, else its display id; a draft is a Chat")
  func titles() throws {
    #expect(chat.title == "Group \(chat.id.suffix(4))" && chat.id.hasPrefix("grp_"))
    tell { $0.summary.profile.name = "Weekend" }
    #expect(chat.title == "Weekend")
    tell { $0.summary.profile.name = nil }
    #expect(chat.title.hasPrefix("Group "))
    let draft = try rig.draft()
    #expect(draft.title == "Chat" && draft.id.hasPrefix("draft_") && draft.state == .draft)
  }

  @Test("S0-12, S0-16, S0-19: a draft flips to active: the same object, the same identity, another id")
  func flip() throws {
    let (draft, snapshot) = try rig.draftAndSnapshot()
    let identity = draft.identity
    var active = snapshot
    active.summary.state = .active
    active.summary.group = rig.group()
    rig.session.take([.chats([active], isAll: false)])
    #expect(draft.state == .active && draft.id == active.summary.group?.text)
    #expect(draft.identity == identity && rig.list.all.contains(draft))
  }

  @Test(
    "S0-89, S3-28, S3-29: unread, last message and last activity are the summary's; a deleted preview shows")
  func summary() {
    let preview = MessagePreview(rig.row("last words", seq: 9, from: rig.peer))
    let at = rig.now()
    tell {
      $0.summary.lastMessage = preview
      $0.summary.lastActivity = at
    }
    #expect(chat.lastMessage?.text == "last words" && chat.lastMessage?.isOutgoing == false)
    #expect(chat.lastMessage?.serverSeq == 9 && chat.lastActivity == Date(at))
    let looks = Looks { [chat] in _ = chat.lastMessage?.text }
    tell { $0.summary.unreadCount = 1 }
    #expect(looks.take() == 0)
    tell { $0.summary.lastMessage?.isDeleted = true }
    #expect(looks.take() == 1 && chat.lastMessage?.isDeleted == true)
  }

  @Test("S0-91: delivered and read never fall, whichever way they come; both begin at 0")
  func ticks() {
    #expect(chat.deliveredUpTo == 0 && chat.readUpTo == 0)
    rig.session.take([
      .receipts(first.id, [ChatReceipt(user: rig.peer, deliveredSeq: 7, readSeq: 5)])
    ])
    #expect(chat.deliveredUpTo == 7 && chat.readUpTo == 5 && chat.readWatermark(of: rig.peer.text) == 5)
    rig.session.take([
      .receipts(first.id, [ChatReceipt(user: rig.peer, deliveredSeq: 3, readSeq: 2)])
    ])
    tell { $0.summary.deliveredUpTo = 4 }
    #expect(chat.deliveredUpTo == 7 && chat.readUpTo == 5 && chat.readWatermark(of: rig.peer.text) == 5)
    #expect(chat.readers(upTo: 5).map(\.userId) == [rig.peer.text] && chat.readers(upTo: 6).isEmpty)
    #expect(chat.readWatermark(of: "usr_nobody") == 0)
  }

  @Test("S0-94, S0-95, S0-98: who types and who is online, by name of a member; told anew each time")
  func live() {
    let looks = Looks { [chat] in _ = chat.typing }
    rig.session.take([.typing(first.id, [rig.peer])])
    #expect(chat.typing.map(\.userId) == [rig.peer.text] && looks.take() == 1)
    rig.session.take([.typing(first.id, [rig.peer])])
    #expect(looks.take() == 0)
    rig.session.take([.typing(first.id, [])])
    #expect(chat.typing.isEmpty)
    #expect(chat.presence(of: rig.peer.text) == nil)
    let at = rig.now()
    rig.session.take([.presence(first.id, rig.peer, isOnline: true, at: at)])
    #expect(chat.presence(of: rig.peer.text) == Presence(isOnline: true, lastSeen: Date(at)))
    #expect(chat.onlineMembers.map(\.userId) == [rig.peer.text])
    // The connection is gone: nobody is known to be there, and when they were seen stays.
    tell { $0.summary.unreadCount = 8 }
    #expect(chat.presence(of: rig.peer.text)?.isOnline == false && chat.onlineMembers.isEmpty)
  }

  @Test("S0-105, S3-24, S3-26: members with their roles, and one's own; who is out has none")
  func members() {
    let ben = rig.user()
    tell {
      $0.members = [
        ChatMemberSnapshot(user: rig.me, role: .admin), ChatMemberSnapshot(user: ben, role: .owner),
      ]
    }
    #expect(chat.members.map(\.role) == [.admin, .owner] && chat.myRole == .admin)
    tell {
      $0.summary.state = .removed
      $0.members = []
    }
    #expect(chat.state == .removed && chat.myRole == nil && chat.members.count == 2)
    #expect(ChatRole.member < .admin && ChatRole.admin < .owner)
  }

  @Test("S0-111: a verified user's devices change: the trust is `changed`, in every chat with them")
  func trust() {
    rig.session.take([.trustChanged(rig.peer, .verified(deviceSetHash: [1]))])
    #expect(chat.trust == .verified)
    let change = DeviceSetChange(
      user: rig.peer, added: [], removed: [], oldHash: [1], newHash: [2], at: rig.now())
    rig.session.take([.trustChanged(rig.peer, .changed(change))])
    #expect(chat.trust == .changed(KeyChangeEvent(change)))
    #expect(chat.trust != .verified)
    rig.session.take([.trustChanged(rig.peer, .unverified)])
    #expect(chat.trust == .unverified)
  }

  @Test("S0-109: a group is verified when everybody is")
  func groupTrust() throws {
    let ben = rig.user()
    let snapshot = rig.snapshot(
      kind: .group, members: [(rig.me, .owner), (rig.peer, .member), (ben, .member)])
    let group = try rig.chat(snapshot)
    rig.session.take([.trustChanged(rig.peer, .verified(deviceSetHash: [1]))])
    #expect(group.trust == .unverified)
    rig.session.take([.trustChanged(ben, .verified(deviceSetHash: [1]))])
    #expect(group.trust == .verified)
  }

  @Test("S0-88: muted is neither not loaded nor all; mentions alone is muted too")
  func muted() {
    #expect(chat.notifyScope == nil && !chat.isMuted)
    tell { $0.summary.notifyScope = .some(.none) }
    #expect(chat.notifyScope == NotifyScope.none && chat.isMuted)
    tell { $0.summary.notifyScope = .all }
    #expect(chat.notifyScope == .all && !chat.isMuted)
  }

  @Test("S0-80: the hook hears of a mention once; one that is set later does not hear of what was decided")
  func elevation() {
    let row = rig.row("hey @you", seq: 1, from: rig.peer)
    tell(.inserted(row), .elevated(row.id))
    var heard: [String] = []
    chat.onMentionElevation = { heard.append($0.id) }
    #expect(heard.isEmpty)
    let other = rig.row("hey again", seq: 2, from: rig.peer)
    tell(.inserted(other), .elevated(other.id))
    tell(.updated(other))
    #expect(heard == [other.id.text])
  }

  @Test("S3-18: how far a file's bytes are, until the message is sent or gone")
  func uploads() throws {
    var row = rig.row("file")
    tell(.inserted(row))
    let message = try #require(chat.messages.first)
    #expect(chat.uploadProgress(of: message) == nil)
    rig.session.take([.upload(first.id, row.id, done: 1, total: 4)])
    #expect(chat.uploadProgress(of: message) == 0.25)
    row.delivery = .sent
    row.position = TranscriptPosition(seq: 1)
    tell(.updated(row))
    #expect(chat.uploadProgress(of: message) == nil)
  }

  @Test(
    "S0-27, S0-74, S3-10: a directory's names, in title, members, senders and mentions; without one there are none"
  )
  func names() {
    struct Names: ProfileDirectory {
      let peer: String
      func displayName(of userId: String) -> String? { userId == peer ? "Ben" : nil }
    }
    var row = rig.row("hi @me", seq: 1, from: rig.peer)
    row.mentions = [Mention(start: 3, length: 3, user: rig.peer)]
    tell(.inserted(row))
    #expect(chat.messages[0].senderDisplayName == nil && chat.messages[0].mentions[0].displayName == nil)
    let maker = MessageMaker(
      me: rig.me, chat: first.id, source: rig.session.source, profiles: Names(peer: rig.peer.text))
    let message = maker.message(row)
    #expect(message.senderDisplayName == "Ben" && message.mentions[0].displayName == "Ben")
  }

  @Test("S0-70: what is deleted says nothing any more")
  func deleted() {
    var row = rig.row("secret", seq: 1, from: rig.peer)
    row.reactions = [ReactionTally(emoji: "👍", users: [rig.me])]
    tell(.inserted(row))
    #expect(chat.messages[0].reactions["👍"] == [rig.me.text])
    (row.isDeleted, row.text, row.reactions) = (true, nil, [])
    tell(.updated(row))
    #expect(chat.messages[0].isDeleted && chat.messages[0].text == nil && chat.messages[0].reactions.isEmpty)
  }

  @Test(
    "S3-8, S3-11, S3-12: each kind of row is a case; a custom content keeps its payload, an unknown one its fallback"
  )
  func kinds() {
    func message(_ kind: RowKind, _ text: String?) -> ChatMessage {
      var row = rig.row("", seq: 1, from: rig.peer)
      (row.kind, row.text) = (kind, text)
      return MessageMaker(me: rig.me, chat: first.id, source: rig.session.source).message(row)
    }
    #expect(message(.text, "hi").kind == .text && message(.text, "hi").text == "hi")
    #expect(message(.voice, nil).kind == .voice && message(.unreadable, nil).kind == .unreadable)
    #expect(
      message(.custom(type: "gift", payload: [1]), "a gift").kind
        == .custom(type: "gift", payload: Data([1])))
    let unknown = message(.unsupported(field: 99), "a poll")
    #expect(unknown.kind == .unsupported(type: "field 99", fallback: "a poll") && unknown.text == "a poll")
    let renamed = message(.system(.renamed("Weekend")), nil)
    #expect(renamed.kind == .system(.renamed("Weekend")) && renamed.answerable == nil)
    #expect(renamed.senderUserId == rig.peer.text && !renamed.isOutgoing)
    let left = message(.system(.memberLeft(rig.peer)), nil)
    #expect(left.kind == .system(.memberLeft(rig.peer.text)))
    #expect(
      message(.system(.roleChanged(rig.peer, .admin)), nil).kind
        == .system(.roleChanged(rig.peer.text, .admin)))
    #expect(
      message(.system(.timerChanged(Expiry(seconds: 60, start: .read))), nil).kind
        == .system(.timerChanged(DisappearingSetting(ttlSeconds: 60, start: .read))))
  }

  @Test("S3-31: what the user said about being written to is the chat's")
  func consent() {
    let looks = Looks { [chat] in _ = chat.consent }
    tell { $0.summary.consent = .denied }
    #expect(chat.consent == .denied && looks.take() == 1)
    tell { $0.summary.consent = .allowed }
    #expect(chat.consent == .allowed)
    #expect(!ShellSettings(MessagingSettings()).asksConsent)
    var settings = MessagingSettings()
    (settings.asksConsent, settings.historyLimit) = (true, 0)
    let shell = ShellSettings(settings)
    #expect(shell.asksConsent && shell.historyLimit == 1)
  }

  @Test("Rows of a chat whose transcript nobody looks at are not held")
  func unloaded() {
    chat.unload()
    tell(.inserted(rig.row("hello", seq: 1)))
    #expect(chat.shown.window.isEmpty)
  }
}
