import Foundation
import PalbeTestKit
import Testing

/// What is public, as `scripts/check-api` compares it with the built module.
@Suite("The public declarations of PalbeMessaging")
struct PublicSurfaceTests {
  private let declarations: [String: [String]]

  init() throws {
    let digest = Vectors.projectRoot.appendingPathComponent("docs/api/PalbeMessaging.txt")
    var declarations: [String: [String]] = [:]
    var path = ""
    for line in try String(contentsOf: digest, encoding: .utf8).split(separator: "\n") {
      if line.hasPrefix("    ") {
        declarations[path, default: []].append(String(line.dropFirst(4)))
      } else {
        path = String(line)
      }
    }
    self.declarations = declarations
  }

  private func members(of type: String) -> Set<String> {
    Set(declarations.keys.filter { $0.hasPrefix(type + ".") }.map { String($0.dropFirst(type.count + 1)) })
  }

  @Test("S0-24: the namespace is exactly the document's; there is no enroll()")
  func namespace() {
    #expect(
      members(of: "MessagingNamespace").subtracting(["incomingCall", "activeCall"]) == [
        "chats", "directChat(with:)", "groupChat(title:members:)", "chat(id:)", "start()", "commsPrefs()",
        "setCommsPrefs(sharePresence:shareReceipts:)",
      ])
  }

  @Test("S0-32...S0-38, S0-43, S3-9: seven ways to send, and two of ours; each receipt may be left unread")
  func sends() {
    let sends = declarations.filter { $0.key.hasPrefix("Chat.send(") }
    #expect(
      Set(sends.keys) == [
        "Chat.send(text:)", "Chat.send(text:mentions:)", "Chat.send(text:replyingTo:)",
        "Chat.send(text:expiresIn:start:)", "Chat.send(image:filename:mimeType:)",
        "Chat.send(file:filename:mimeType:)", "Chat.send(voice:durationMs:peaks:)",
        "Chat.send(video:filename:mimeType:durationMs:poster:)", "Chat.send(custom:payload:fallback:)",
      ])
    for (path, lines) in sends {
      #expect(
        lines.allSatisfy { $0.contains("async throws -> SentReceipt") && $0.contains("@discardableResult") },
        "\(path)")
    }
    #expect(
      declarations["Chat.send(image:filename:mimeType:)"]?.first?.contains(
        "mimeType: String = \"image/jpeg\"") == true)
    #expect(
      declarations["Chat.send(voice:durationMs:peaks:)"]?.first?.contains("peaks: [Int]? = nil") == true)
  }

  @Test("S0-5: whatever throws throws any error; no inner type is named")
  func throwing() {
    for (path, lines) in declarations {
      for line in lines {
        #expect(!line.contains("throws("), "\(path)")
        #expect(
          line.firstMatch(of: /\b(MLS|ClientMessageID|UserID|GroupID|Row|Envelope|MessagingShell)\b/) == nil,
          "\(path)")
      }
    }
  }

  @Test("S0-99, S0-138: what the document takes back is not public")
  func takenBack() {
    for name in [
      "enroll", "createGroup", "history", "onMessage", "claimKeyPackages", "listDevices", "replenish",
      "resetMessagingLocalState", "onKeyChange", "PresenceStore", "TypingStore", "ReceiptsStore",
    ] {
      #expect(
        !declarations.keys.contains {
          $0.split(separator: ".").last?.split(separator: "(").first == name[...]
        })
    }
  }

  @Test("S0-4, S0-140, S3-27: the properties of a chat and of a message are all there")
  func properties() {
    #expect(
      members(of: "Chat").isSuperset(of: [
        "id", "kind", "state", "title", "createdAt", "members", "myRole", "lastMessage", "lastActivity",
        "unreadCount", "serverUnread", "notifyScope", "isMuted", "disappearing", "disappearingAckedBy",
        "trust",
        "typing", "onlineMembers", "deliveredUpTo", "readUpTo", "epoch", "consent", "messages",
        "onMentionElevation", "readers(upTo:)", "readWatermark(of:)", "presence(of:)",
      ]))
    #expect(
      members(of: "ChatMessage").isSuperset(of: [
        "init(id:serverSeq:senderUserId:senderDeviceId:kind:text:attachment:sentAt:isOutgoing:)", "reply",
        "reactions", "isEdited", "isDeleted", "mentions", "expiresAt", "delivery", "epoch",
      ]))
  }
}
