import Foundation
import PalbeTestKit
import Testing

@testable import Palbase
@testable import PalbeMessaging

@MainActor @Suite("pb.messaging over a real server", .serialized, .timeLimit(.minutes(4)))
struct FlowTests {
  private let server: ChatServer

  init() throws { server = try ChatServer() }

  @Test(
    "S0-12, S0-13, S0-15, S0-16, S0-22, S0-23, S0-31, S0-32, S0-39: a direct chat, from nothing to both sides"
  )
  func direct() async throws {
    let (anna, ben) = (try await Person.there(server, "anna"), try await Person.there(server, "ben"))
    let chat = await anna.messaging.directChat(with: ben.id)
    #expect(await anna.messaging.directChat(with: ben.id) === chat)
    #expect(chat.state == .draft && chat.title == "Chat" && chat.kind == .direct)
    #expect(anna.messaging.chats.all.isEmpty && ben.messaging.chats.all.isEmpty)
    let identity = chat.identity
    let receipt = try await chat.send(text: "Saturday works for me")
    #expect(receipt.serverSeq > 0 && receipt.epoch > 0)
    #expect(chat.state == .active && chat.id.hasPrefix("grp_") && chat.identity == identity)
    #expect(anna.messaging.chats.all == [chat] && chat.title == "Group \(chat.id.suffix(4))")
    let message = try #require(chat.messages.first { $0.id == receipt.messageId })
    #expect(message.serverSeq == receipt.serverSeq && message.delivery == .sent && message.isOutgoing)
    let other = try await ben.chat(showing: "Saturday works for me")
    #expect(other.unreadCount == 1 && other.id == chat.id)
    #expect(await ben.messaging.directChat(with: anna.id) === other)
    #expect(await ben.messaging.chat(id: chat.id) === other)
    #expect(await ben.messaging.chat(id: "grp_01890a5d-ac96-774b-bcce-b302099a8057") == nil)
    #expect(await ben.messaging.chat(id: "nonsense") == nil)
    await until { chat.deliveredUpTo >= receipt.serverSeq }
    // S0-96, S0-91, S0-97.
    try await other.markRead(upTo: try #require(other.messages.last))
    #expect(other.unreadCount == 0)
    await until { chat.readUpTo >= receipt.serverSeq }
    await until { chat.readWatermark(of: ben.id) >= receipt.serverSeq }
    #expect(chat.readers(upTo: receipt.serverSeq).map(\.userId) == [ben.id])
    await anna.end()
    await ben.end()
  }

  @Test("S0-5, S0-6: nobody is signed in: drafts all the same, whose calls say so; then they are the user's")
  func signedOut() async throws {
    let ben = try await Person.there(server, "ben")
    let anna = try Person(server, "anna")
    let chat = await anna.messaging.directChat(with: ben.id)
    #expect(chat.state == .draft && chat.messages.isEmpty)
    #expect(await anna.messaging.directChat(with: ben.id) === chat)
    let group = await anna.messaging.groupChat(title: "Weekend", members: [ben.id])
    #expect(group.title == "Weekend" && group.kind == .group)
    #expect(await failure { _ = try await chat.send(text: "hi") } == .notSignedIn)
    #expect(await failure { _ = try await group.send(text: "hi") } == .notSignedIn)
    #expect(await failure { try await anna.messaging.start() } == .notSignedIn)
    #expect(await failure { _ = try await anna.messaging.commsPrefs() } == .notSignedIn)
    #expect(await failure { _ = try await chat.refreshUnread() } == .chatIsDraft)
    try await anna.signUp()
    #expect(await anna.messaging.directChat(with: ben.id) === chat)
    try await chat.send(text: "now")
    try await group.send(text: "both")
    #expect(chat.state == .active && group.state == .active && group.title == "Weekend")
    #expect(Set(anna.messaging.chats.all) == [chat, group])
    let nobody = await anna.messaging.directChat(with: "usr_nobody")
    #expect(await failure { _ = try await nobody.send(text: "hi") } == .userNotFound)
    await anna.end()
    await ben.end()
  }

  @Test("S0-17: what only the server knows is refused for a draft; nothing of it leaves the device")
  func drafts() async throws {
    let (anna, ben) = (try await Person.there(server, "anna"), try await Person.there(server, "ben"))
    for chat in [
      await anna.messaging.directChat(with: ben.id), await anna.messaging.groupChat(members: [ben.id]),
    ] {
      #expect(await failure { try await chat.setNotifyScope(.none) } == .chatIsDraft)
      #expect(await failure { try await chat.refreshNotifyScope() } == .chatIsDraft)
      #expect(await failure { try await chat.refreshUnread() } == .chatIsDraft)
      #expect(await failure { try await chat.leave() } == .chatIsDraft)
      #expect(chat.state == .draft)
    }
    await anna.end()
    await ben.end()
  }

  @Test("S0-34, S0-60, S0-63, S0-66, S0-68, S0-69, S0-70, S0-71: answers, reactions, edits, deletions")
  func actions() async throws {
    let (anna, ben) = (try await Person.there(server, "anna"), try await Person.there(server, "ben"))
    let chat = await anna.messaging.directChat(with: ben.id)
    try await chat.send(text: "one")
    let other = try await ben.chat(showing: "one")
    let one = try #require(other.messages.first { $0.text == "one" })
    try await other.react(one, emoji: "👍")
    try await other.send(text: "agreed", replyingTo: one)
    await until { chat.messages.contains { $0.text == "agreed" } }
    await until { chat.messages.first { $0.text == "one" }?.reactions["👍"] == [ben.id] }
    let answer = try #require(chat.messages.first { $0.text == "agreed" })
    #expect(answer.reply?.state == .resolved && answer.reply?.quoteText == "one")
    // S0-61: the quote follows its message.
    let mine = try #require(chat.messages.first { $0.text == "one" })
    try await chat.edit(mine, newText: "two")
    await until { other.messages.contains { $0.text == "two" && $0.isEdited } }
    await until { chat.messages.first { $0.text == "agreed" }?.reply?.quoteText == "two" }
    // S0-67, S0-69: only one's own.
    let theirs = try #require(chat.messages.first { $0.text == "agreed" })
    try await chat.edit(theirs, newText: "never")
    #expect(await failure { try await chat.deleteForEveryone(theirs) } == .forbidden)
    #expect(await failure { try await chat.react(theirs, emoji: "two words") } == .invalidRequest)
    try await other.unreact(one, emoji: "👍")
    await until { chat.messages.first { $0.text == "two" }?.reactions.isEmpty == true }
    try await chat.deleteForEveryone(mine)
    await until { other.messages.contains { $0.isDeleted && $0.text == nil } }
    // S0-71: at once, here alone.
    chat.deleteForMe(theirs)
    #expect(!chat.messages.contains { $0.id == theirs.id })
    #expect(other.messages.contains { $0.text == "agreed" })
    await anna.end()
    await ben.end()
  }

  @Test(
    "S0-50, S0-62: what the app made itself is not known: nothing is sent, and an answer to it is a plain text"
  )
  func ownMaking() async throws {
    let (anna, ben) = (try await Person.there(server, "anna"), try await Person.there(server, "ben"))
    let chat = await anna.messaging.directChat(with: ben.id)
    let first = try await chat.send(text: "one")
    let fake = ChatMessage(
      id: first.messageId, serverSeq: 1, senderUserId: anna.id, senderDeviceId: "", kind: .text, text: "one",
      attachment: nil, sentAt: Date(), isOutgoing: true)
    try await chat.react(fake, emoji: "👍")
    try await chat.edit(fake, newText: "two")
    try await chat.deleteForEveryone(fake)
    try await chat.retry(fake)
    try await chat.cancel(fake)
    let second = try await chat.send(text: "answer", replyingTo: fake)
    // Nothing was sent in between.
    #expect(second.serverSeq == first.serverSeq + 1)
    let answer = try #require(chat.messages.first { $0.text == "answer" })
    #expect(answer.reply == nil)
    try await chat.send(text: "plain", replyingTo: nil)
    #expect(
      chat.messages.last?.reply == nil && chat.messages.first { $0.id == first.messageId }?.text == "one")
    await anna.end()
    await ben.end()
  }

  @Test("S0-14, S0-29, S0-103..S0-106: a group: each call another; members, roles, a name, leaving")
  func groups() async throws {
    let people = [
      try await Person.there(server, "anna"), try await Person.there(server, "ben"),
      try await Person.there(server, "cleo"),
    ]
    let (anna, ben, cleo) = (people[0], people[1], people[2])
    let group = await anna.messaging.groupChat(title: "Weekend", members: [ben.id])
    #expect(await anna.messaging.groupChat(title: "Weekend", members: [ben.id]) !== group)
    try await group.send(text: "hello")
    #expect(group.title == "Weekend" && group.myRole == .owner)
    let other = try await ben.chat(showing: "hello")
    await until { other.title == "Weekend" && other.myRole == .member }
    try await group.addMember(userId: cleo.id)
    await until { cleo.messaging.chats.all.contains { $0.id == group.id } }
    let third = try #require(cleo.messaging.chats.all.first { $0.id == group.id })
    await until { third.title == "Weekend" && third.members.count == 3 }
    #expect(await failure { try await other.rename("No") } == .forbidden)
    #expect(await failure { try await other.setRole(.owner, for: ben.id) } == .forbidden)
    try await group.setRole(.admin, for: ben.id)
    await until { other.myRole == .admin }
    try await other.rename("Sunday")
    await until { group.title == "Sunday" && third.title == "Sunday" }
    try await group.removeMember(userId: cleo.id)
    await until { third.state == .removed && group.members.count == 2 }
    #expect(await failure { _ = try await third.send(text: "still here") } == .notAMember)
    try await other.leave()
    #expect(other.state == .left && !ben.messaging.chats.all.contains(other))
    // S0-103 on a direct chat.
    let direct = await anna.messaging.directChat(with: ben.id)
    #expect(await failure { try await direct.addMember(userId: cleo.id) } == .chatIsDirect)
    #expect(await failure { try await direct.removeMember(userId: ben.id) } == .chatIsDirect)
    #expect(await failure { try await direct.rename("x") } == .chatIsDirect)
    #expect(await failure { try await direct.setRole(.admin, for: ben.id) } == .chatIsDirect)
    for person in people { await person.end() }
  }

  @Test("S0-36, S0-41, S0-42, S0-43, S0-57, S0-58, S0-59: pictures, voice, videos, files, there and back")
  func files() async throws {
    let (anna, ben) = (try await Person.there(server, "anna"), try await Person.there(server, "ben"))
    let chat = await anna.messaging.directChat(with: ben.id)
    try await chat.send(text: "look")
    let other = try await ben.chat(showing: "look")
    let picture = try Data(
      contentsOf: Vectors.projectRoot.appendingPathComponent("Tests/Fuzz/Corpus/image-thumbnail/jpeg-exif"))
    try await chat.send(image: picture, filename: "beach.jpg")
    try await chat.send(image: Data("no picture".utf8), filename: "broken.jpg")
    try await chat.send(voice: Data("m4a".utf8), durationMs: 8_200, peaks: [1, 300])
    try await chat.send(video: Data("mp4".utf8), filename: "clip.mp4", durationMs: 900, poster: picture)
    try await chat.send(
      file: Data(repeating: 7, count: 3_000_000), filename: "r.pdf", mimeType: "application/pdf")
    await until { other.messages.filter { $0.attachment != nil }.count == 5 }
    let files = other.messages.compactMap(\.attachment)
    #expect(files.map(\.kind) == [.image, .image, .voice, .video, .file])
    #expect(files[0].thumbnail != nil && (files[0].width, files[0].height) == (16, 24))
    #expect(files[1].thumbnail == nil && files[1].filename == "broken.jpg")
    #expect(
      files[2].filename == "voice.m4a" && files[2].mimeType == "audio/m4a" && files[2].waveform == [1, 255])
    #expect(files[2].durationMs == 8_200 && files[3].thumbnail != nil && files[3].durationMs == 900)
    #expect(try await files[0].fetchBlob() == picture)
    var (bytes, pieces) = (0, 0)
    for try await piece in files[4].fetchBlobStream() {
      bytes += piece.count
      pieces += 1
      #expect(piece.count <= 1 << 20 && piece.allSatisfy { $0 == 7 })
    }
    #expect(bytes == 3_000_000 && pieces > 1)
    // One's own too.
    let own = try #require(chat.messages.last?.attachment)
    #expect(try await own.fetchBlob().count == 3_000_000)
    #expect(
      await failure { try await chat.send(file: Data(), filename: "../x", mimeType: "a/b") }
        == .invalidRequest)
    await anna.end()
    await ben.end()
  }

  @Test("S0-81, S0-86: the chat's timer reaches everybody, and who said that they follow it is told")
  func disappearing() async throws {
    let (anna, ben) = (try await Person.there(server, "anna"), try await Person.there(server, "ben"))
    let chat = await anna.messaging.directChat(with: ben.id)
    try await chat.send(text: "hello")
    let other = try await ben.chat(showing: "hello")
    try await chat.setDisappearing(ttlSeconds: 86_400, start: .read)
    #expect(chat.disappearing == DisappearingSetting(ttlSeconds: 86_400, start: .read))
    await until { other.disappearing?.ttlSeconds == 86_400 }
    await until { chat.disappearingAckedBy.contains(ben.id) }
    try await chat.send(text: "the code is 4417", expiresIn: 300)
    try await chat.setDisappearing(ttlSeconds: nil)
    await until { other.disappearing == nil }
    for wrong in [0, -1, Int.max] {
      #expect(await failure { try await chat.setDisappearing(ttlSeconds: wrong) } == .invalidRequest)
      #expect(await failure { _ = try await chat.send(text: "x", expiresIn: wrong) } == .invalidRequest)
    }
    await anna.end()
    await ben.end()
  }

  @Test("S0-87, S0-88, S0-90, S0-100: scope, the server's unread count, what others see")
  func metadata() async throws {
    let (anna, ben) = (try await Person.there(server, "anna"), try await Person.there(server, "ben"))
    let chat = await anna.messaging.directChat(with: ben.id)
    try await chat.send(text: "hello")
    let other = try await ben.chat(showing: "hello")
    #expect(other.notifyScope == nil && !other.isMuted)
    #expect(try await other.refreshNotifyScope() == .all)
    try await other.setNotifyScope(.none)
    #expect(other.notifyScope == NotifyScope.none && other.isMuted)
    try await other.setNotifyScope(.mentions)
    #expect(other.notifyScope == .mentions && other.isMuted)
    #expect(try await other.refreshNotifyScope() == .mentions)
    try await other.setNotifyScope(.all)
    #expect(try await other.refreshNotifyScope() == .all)
    #expect(try await other.refreshUnread() >= 1 && other.serverUnread?.unreadCount ?? 0 >= 1)
    try await other.markRead(upTo: try #require(other.messages.last))
    #expect(try await ben.messaging.commsPrefs() == CommsPrefs(sharePresence: true, shareReceipts: true))
    #expect(try await ben.messaging.setCommsPrefs(sharePresence: false).sharePresence == false)
    #expect(try await ben.messaging.commsPrefs() == CommsPrefs(sharePresence: false, shareReceipts: true))
    await anna.end()
    await ben.end()
  }

  @Test("S0-80, S0-93, S0-94, S0-95: who is there, who types, who is named")
  func live() async throws {
    let (anna, ben) = (try await Person.there(server, "anna"), try await Person.there(server, "ben"))
    let chat = await anna.messaging.directChat(with: ben.id)
    try await chat.send(text: "hello")
    let other = try await ben.chat(showing: "hello")
    await until { chat.presence(of: ben.id)?.isOnline == true }
    await until { chat.onlineMembers.map(\.userId) == [ben.id] }
    other.setTyping(true)
    await until { chat.typing.map(\.userId) == [ben.id] }
    other.setTyping(false)
    await until { chat.typing.isEmpty }
    var heard: [String] = []
    other.onMentionElevation = { heard.append($0.text ?? "") }
    try await chat.send(
      text: "hey @ben", mentions: [MentionRange(start: 4, length: 4, mentionedUserId: ben.id)])
    await until { other.messages.contains { $0.text == "hey @ben" } }
    let message = try #require(other.messages.first { $0.text == "hey @ben" })
    #expect(message.mentions == [ResolvedMention(start: 4, length: 4, mentionedUserId: ben.id)])
    #expect(heard == ["hey @ben"])
    await anna.end()
    await ben.end()
  }

  @Test("S0-107, S0-108, S0-109, S0-111: both see one number; verified; another device changes it")
  func trust() async throws {
    let (anna, ben) = (try await Person.there(server, "anna"), try await Person.there(server, "ben"))
    let chat = await anna.messaging.directChat(with: ben.id)
    #expect(await failure { _ = try await chat.safetyNumber() } == .chatIsDraft)
    try await chat.send(text: "hello")
    let other = try await ben.chat(showing: "hello")
    let (mine, theirs) = (try await chat.safetyNumber(), try await other.safetyNumber())
    #expect(mine.safetyNumber == theirs.safetyNumber && mine.safetyNumber.count == 60)
    #expect(mine.peerDeviceSetHash == theirs.localDeviceSetHash)
    #expect(chat.trust == .unverified)
    #expect(
      await failure { try await chat.verify(ben.id, deviceSetHash: Data(repeating: 0, count: 32)) }
        == .integrityFailed)
    try await chat.verify(ben.id, deviceSetHash: mine.peerDeviceSetHash)
    await until { chat.trust == .verified }
    let group = await anna.messaging.groupChat(members: [ben.id])
    #expect(await failure { _ = try await group.safetyNumber() } == .chatIsGroup)
    // Another device of ben's.
    let tablet = try Person(server, "ben")
    try await tablet.signIn()
    try await tablet.messaging.start()
    await until {
      if case .changed(let change) = chat.trust { change.addedDeviceIds.count == 1 } else { false }
    }
    for person in [anna, ben, tablet] { await person.end() }
  }

  @Test("S0-51, S0-52: older messages come from this device, each once, until there are none")
  func history() async throws {
    let (anna, ben) = (try await Person.there(server, "anna"), try await Person.there(server, "ben"))
    let chat = await anna.messaging.directChat(with: ben.id)
    for number in 1...70 { try await chat.send(text: "\(number)") }
    #expect(chat.messages.filter { $0.kind == .text }.count == 70)
    await anna.end()
    // A new start of the app.
    let again = try Person(server, "anna", in: anna.folder)
    let same = await again.messaging.directChat(with: ben.id)
    #expect(same.messages.count == 50 && same.messages.last?.text == "70" && same.hasEarlier)
    #expect(try await same.loadEarlier(limit: 10) == 10)
    #expect(same.messages.count == 60)
    while try await same.loadEarlier(limit: 50) > 0 {}
    #expect(try await same.loadEarlier(limit: 50) == 0 && !same.hasEarlier)
    #expect(same.messages.filter { $0.kind == .text }.map { $0.text ?? "" } == (1...70).map(String.init))
    await again.end()
    await ben.end()
  }

  @Test(
    "S1-18, 2.2: signing out empties the list; somebody else sees their own; the first comes back to the same chats"
  )
  func anotherUser() async throws {
    let (anna, ben) = (try await Person.there(server, "anna"), try await Person.there(server, "ben"))
    let chat = await anna.messaging.directChat(with: ben.id)
    try await chat.send(text: "mine")
    let list = anna.messaging.chats
    #expect(list.all == [chat])
    try await anna.pb.auth.signOut()
    await until { list.all.isEmpty }
    #expect(await failure { _ = try await chat.send(text: "late") } == .notSignedIn)
    try await anna.signIn()
    let back = await anna.messaging.directChat(with: ben.id)
    #expect(back === chat)
    try await chat.send(text: "again")
    #expect(anna.messaging.chats === list && list.all == [chat])
    // Somebody else at the same device.
    try await anna.pb.auth.signOut()
    try await anna.pb.auth.signUp(email: "dora@example.com", password: "correct horse dora")
    let hers = await anna.messaging.directChat(with: ben.id)
    #expect(hers !== chat && hers.state == .draft && list.all.isEmpty)
    try await hers.send(text: "dora here")
    #expect(list.all == [hers])
    #expect(await failure { _ = try await chat.send(text: "late") } == .notSignedIn)
    await anna.end()
    await ben.end()
  }
}
