import Foundation
import Palbase
import PalbeChatCore
import Testing

@testable import PalbeMessaging

private typealias AttachmentKind = PalbeMessaging.AttachmentKind
private typealias ResolvedReply = PalbeMessaging.ResolvedReply
private typealias SafetyNumber = PalbeMessaging.SafetyNumber
private typealias DeviceMaterial = PalbeMessaging.DeviceMaterial

@Suite("What a chat is made of")
struct ValueTests {
  @Test("S0-49: messages are equal by id only")
  func equality() {
    let one = ChatMessage.preview(id: "a", text: "one")
    let two = ChatMessage.preview(id: "a", text: "two", isEdited: true)
    #expect(one == two && one != ChatMessage.preview(id: "b", text: "one") && Set([one, two]).count == 1)
  }

  @Test(
    "S0-50: nine parameters make a message that the chat does not know; preview makes one with everything")
  func own() {
    let message = ChatMessage(
      id: "msg_1", serverSeq: 4, senderUserId: "usr_a", senderDeviceId: "mdv_a", kind: .text, text: "hi",
      attachment: nil, sentAt: Date(timeIntervalSince1970: 5), isOutgoing: true)
    #expect(message.clientMsgId.isEmpty && message.answerable == nil && message.reactions.isEmpty)
    #expect(!message.isEdited && !message.isDeleted && message.mentions.isEmpty && message.delivery == .sent)
    let preview = ChatMessage.preview(
      reply: ResolvedReply(
        parentClientMsgId: "msg_2", state: .resolved, quoteSenderUserId: "usr_b", quoteText: "q",
        quoteKind: "text"),
      reactions: ["👍": ["usr_b"]], isEdited: true, isDeleted: true,
      mentions: [ResolvedMention(start: 0, length: 1, mentionedUserId: "usr_b")],
      delivery: .failed(.forbidden))
    #expect(preview.clientMsgId.isEmpty && preview.isEdited && preview.isDeleted)
    #expect(preview.reply?.quoteText == "q" && preview.reactions["👍"] == ["usr_b"])
  }

  @Test("S0-73: a mention's range goes through JSON by these names")
  func mentionRange() throws {
    let range = MentionRange(start: 4, length: 4, mentionedUserId: "usr_ali")
    let json = try JSONEncoder().encode(range)
    let keys = try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any]).keys
    #expect(Set(keys) == ["start", "length", "mentionedUserId"])
    #expect(try JSONDecoder().decode(MentionRange.self, from: json) == range)
  }

  @Test("S0-63: reactions in the order they came, by emoji")
  func reactions() {
    let reactions = MessageReactions(
      [("👍", ["a", "b"]), ("❤️", ["c"]), ("👍", ["d"])].map { (emoji: $0.0, userIds: $0.1) })
    var seen: [String] = []
    for (emoji, userIds) in reactions { seen.append("\(emoji) \(userIds.count)") }
    #expect(seen == ["👍 2", "❤️ 1"] && reactions["❤️"] == ["c"] && reactions["🎉"] == nil)
  }

  @Test(
    "S0-40: the kind follows from the media type",
    arguments: [
      ("image/png", AttachmentKind.image), ("IMAGE/JPEG", .image), ("video/mp4", .video),
      ("audio/ogg", .voice),
      ("application/pdf", .file), ("", .file), ("imagery", .file), ("text/html; charset=utf-8", .file),
    ])
  func kinds(mimeType: String, kind: PalbeMessaging.AttachmentKind) {
    #expect(AttachmentKind(mimeType: mimeType) == kind)
  }

  @Test(
    "S0-33, S0-75, S0-77: ranges in UTF-16; what cuts a pair, leaves the text, overlaps or names nobody is refused"
  )
  func mentions() throws {
    let user = "usr_01890a5d-ac96-774b-bcce-b302099a8057"
    func code(_ text: String, _ ranges: [(Int, Int)], _ user: String) -> FailureCode? {
      do {
        _ = try TextBody(
          checked: text, ranges.map { MentionRange(start: $0.0, length: $0.1, mentionedUserId: user) })
        return nil
      } catch { return (error as? BackendError)?.code }
    }
    #expect(code("😀 @ali", [(3, 4)], user) == nil)
    #expect(code("😀 @ali", [(1, 2)], user) == .invalidRequest)
    #expect(code("@ali", [(0, 5)], user) == .invalidRequest)
    #expect(code("@ali", [(0, 3), (2, 2)], user) == .invalidRequest)
    #expect(code("@ali", [(.max, 2)], user) == .invalidRequest)
    #expect(
      code("@ali", [(-1, 2)], user) == .invalidRequest && code("@ali", [(0, 0)], user) == .invalidRequest)
    #expect(code("@ali", [(0, 4)], "usr_ali") == .invalidRequest)
    #expect(code(String(repeating: "x", count: 64 << 10), [], user) == nil)
    #expect(code(String(repeating: "x", count: 64 << 10 | 1), [], user) == .messageTooLarge)
    #expect(code(String(repeating: "x", count: 101), (0..<101).map { ($0, 1) }, user) == .invalidRequest)
  }

  @Test("S0-107, S0-108, S0-110: both sides get the same 60 digits; the helpers are the parts of it")
  func safetyNumber() throws {
    let (anna, ben) = ("usr_anna", "usr_ben")
    let device = "mdv_01890a5d-ac96-774b-bcce-b302099a8057"
    #expect(SafetyNumber.uuidBytes(fromDeviceId: device)?.count == 16)
    #expect(SafetyNumber.uuidBytes(fromDeviceId: "mdv_1") == nil)
    let own = SafetyNumber.identityMaterial([
      DeviceMaterial(deviceId: device, signatureKey: Data([1, 2])),
      DeviceMaterial(deviceId: "other", signatureKey: Data([0])),
    ])
    #expect(
      own == Data([0]) + Data("other".utf8) + Data([1, 2]) + SafetyNumber.uuidBytes(fromDeviceId: device)!)
    let other = SafetyNumber.fingerprintInput(signatureKey: Data([9]), partyIdentity: Data([8]))
    let number = SafetyNumber.compute(
      localUserId: anna, localMaterial: own, remoteUserId: ben, remoteMaterial: other)
    #expect(
      number
        == SafetyNumber.compute(
          localUserId: ben, localMaterial: other, remoteUserId: anna, remoteMaterial: own))
    #expect(
      number.count == 60 && number.allSatisfy(\.isNumber) && SafetyNumber.groups(of: number).count == 12)
    #expect(SafetyNumber.qrPayload(localMaterial: own, remoteMaterial: other).count == 72)
  }

  @Test("S0-56: an attachment of the app's own has no bytes to fetch")
  func attachment() async {
    let attachment = Attachment(filename: "a.jpg", mimeType: "image/jpeg", kind: .image, plaintextSize: 3)
    await #expect(throws: BackendError.client(.blobNotFound)) { _ = try await attachment.fetchBlob() }
    await #expect(throws: BackendError.client(.blobNotFound)) {
      for try await _ in attachment.fetchBlobStream() {}
    }
  }
}
