import PalbeChatCore
import PalbeMessaging
import PalbeTestKit
import PalbeUnits
import Testing

@testable import Palbase

@MainActor @Suite("Shells that talk over a real server", .serialized, .timeLimit(.minutes(2)))
struct ShellTalkTests {
  private let server: ChatServer

  init() throws { server = try ChatServer() }

  @Test("S3-13, S3-17, S0-38: a text shows at once, is sent, and comes to the other and back")
  func twoPeople() async throws {
    let (anna, ben) = (try await ChatApp(server, "anna"), try await ChatApp(server, "ben"))
    let chat = try await anna.chat(with: ben)
    let sent = try await anna.shell.send(.text(TextBody("hello")), to: chat)
    #expect(sent.seq > 0 && sent.epoch > 0)
    // It came through the sink before, confirmed.
    #expect(anna.told.rows[chat]?[sent.id]?.delivery == .sent)
    #expect(anna.told.chats[chat]?.summary.state == .active)
    await ben.told.when { $0.chat(with: "hello") != nil }
    let other = try #require(ben.told.chat(with: "hello"))
    _ = try await ben.shell.send(.text(TextBody("hi")), to: other, replyingTo: sent.id)
    await anna.told.when { $0.texts(chat) == ["hello", "hi"] }
    #expect(anna.told.rows[chat]?.values.first { $0.text == "hi" }?.reply?.parent == sent.id)
    let page = try await anna.shell.page(of: chat, limit: 50)
    #expect(page.rows.compactMap(\.text) == ["hello", "hi"])
    // The other side's device says how far it got.
    await anna.told.when { told in
      told.events.contains {
        if case .receipts(chat, let all) = $0 { all.contains { $0.deliveredSeq >= sent.seq } } else { false }
      }
    }
    await anna.shell.close()
    await ben.shell.close()
  }
}
