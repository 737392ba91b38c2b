import Foundation
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeChatCore
@testable import PalbeMessaging

private typealias Chat = PalbeMessaging.Chat

@MainActor @Suite("The list of chats")
struct ChatListTests {
  private let rig: ModelRig

  init() throws { rig = try ModelRig() }

  private func tell(_ snapshots: ChatSnapshot...) { rig.session.take([.chats(snapshots, isAll: false)]) }

  private func active(_ activity: Int64) -> ChatSnapshot {
    var snapshot = rig.snapshot(kind: .group)
    snapshot.summary.lastActivity = WallTime(microseconds: activity)
    return snapshot
  }

  @Test("S3-28: the latest activity first; a chat moves when something is said in it")
  func order() {
    var chats = [active(10), active(30), active(20)]
    rig.session.take([.chats(chats, isAll: true)])
    #expect(rig.list.all.map(\.id) == [1, 2, 0].map { chats[$0].summary.group?.text })
    let looks = Looks { [list = rig.list] in _ = list.all }
    chats[0].summary.lastActivity = WallTime(microseconds: 40)
    tell(chats[0])
    #expect(rig.list.all.map(\.id) == [0, 1, 2].map { chats[$0].summary.group?.text })
    #expect(looks.take() == 1)
    // What does not move it does not move the list.
    chats[2].summary.unreadCount = 4
    tell(chats[2])
    #expect(looks.take() == 0)
  }

  @Test("S0-17, S0-18: only active chats are listed; drafts and what is over are not")
  func active() {
    var draft = rig.snapshot(kind: .group, state: .draft)
    tell(draft)
    #expect(rig.list.all.isEmpty)
    draft.summary.state = .active
    draft.summary.group = rig.group()
    tell(draft)
    #expect(rig.list.all.count == 1)
    draft.summary.state = .left
    tell(draft)
    #expect(rig.list.all.isEmpty)
  }

  @Test("S0-20, S3-25: onChange hears of any visible change, together, until it is unsubscribed")
  func changes() {
    var heard: [Int] = []
    let unsubscribe = rig.list.onChange { heard.append($0.count) }
    var (first, second) = (active(10), active(20))
    tell(first, second)
    #expect(heard == [2])
    // A name, a member, an unread count.
    first.summary.profile.name = "Weekend"
    second.summary.unreadCount = 1
    tell(first, second)
    #expect(heard == [2, 2])
    // Nothing new is nothing.
    tell(first, second)
    #expect(heard == [2, 2])
    rig.session.take([.transcript(first.id, [.inserted(rig.row("hi", seq: 1))])])
    #expect(heard == [2, 2, 2])
    unsubscribe()
    unsubscribe()
    second.summary.unreadCount = 2
    tell(second)
    #expect(heard == [2, 2, 2])
  }

  @Test("S0-21: snapshots begin with the list as it is; who is slow gets the newest")
  func snapshots() async {
    tell(active(10))
    var stream = rig.list.snapshots().makeAsyncIterator()
    #expect(await stream.next(isolation: MainActor.shared)?.count == 1)
    tell(active(20))
    tell(active(30))
    #expect(await stream.next(isolation: MainActor.shared)?.count == 3)
  }

  @Test("S3-28: five hundred chats, some of which move: what sorting each time gives")
  func many() {
    var chats = (0..<500).map { active(Int64($0 * 7 % 503)) }
    rig.session.take([.chats(chats, isAll: true)])
    var random = RandomSource(seed: 5)
    for round in 0..<30 {
      var moved: [ChatSnapshot] = []
      for _ in 0..<(round % 10 == 0 ? 100 : 3) {
        let place = Int(random.next() % 500)
        chats[place].summary.lastActivity = WallTime(microseconds: Int64(random.next() % 100_000))
        chats[place].summary.state = random.next() % 20 == 0 ? .left : .active
        moved.append(chats[place])
      }
      rig.session.take([.chats(moved, isAll: false)])
      let wanted = chats.filter { $0.summary.state == .active }.sorted {
        ($0.summary.lastActivity, $0.id) > ($1.summary.lastActivity, $1.id)
      }
      #expect(rig.list.all.map(\.id) == wanted.map { $0.summary.group?.text })
    }
  }

  @Test("S0-13: the chat with a user is one object, also when the list finds it behind a draft of the app's")
  func adopted() throws {
    let draft = Chat(.direct(peer: rig.peer.text), id: "draft_x", at: .now, rig.messenger)
    #expect(rig.session.expect(draft, rig.peer.text))
    let snapshot = rig.snapshot()
    tell(snapshot)
    #expect(rig.session.known(snapshot.id) === draft && rig.list.all == [draft])
    #expect(draft.id == snapshot.summary.group?.text && draft.state == .active)
    #expect(rig.session.chat(with: rig.peer) === draft)
  }
}
