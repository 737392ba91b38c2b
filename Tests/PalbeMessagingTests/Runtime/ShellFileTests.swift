import Foundation
import PalbeChatCore
import PalbeMessaging
import PalbeTestKit
import PalbeUnits
import Testing

@testable import Palbase

@MainActor @Suite("Files over a real server", .serialized, .timeLimit(.minutes(2)))
struct ShellFileTests {
  private let server: ChatServer

  init() throws { server = try ChatServer() }

  private func bytes(_ count: Int) -> [UInt8] {
    var random = RandomSource(seed: 5)
    return random.bytes(count)
  }

  private func all(_ stream: AsyncThrowingStream<[UInt8], any Error>) async throws -> [UInt8] {
    var result: [UInt8] = []
    for try await piece in stream { result += piece }
    return result
  }

  private func spool(_ app: ChatApp) throws -> [String] {
    try FileManager.default.contentsOfDirectory(
      atPath: MessagingShell.folder(of: app.user, in: app.runtime) + "/spool")
  }

  @Test(
    "S0-40, S0-44, S0-46, S3-13: a file shows at once, goes up, and comes down whole; the spool is empty then"
  )
  func file() async throws {
    let (anna, ben) = (try await ChatApp(server, "anna"), try await ChatApp(server, "ben"))
    let chat = try await anna.chat(with: ben)
    let file = bytes(2_500_000)
    var outgoing = OutgoingFile(.bytes(file), kind: .image, filename: "a.jpg", mimeType: "image/jpeg")
    outgoing.caption = "look"
    let sent = try await anna.shell.sendFile(outgoing, to: chat)
    #expect(anna.told.rows[chat]?[sent.id]?.delivery == .sent)
    #expect(
      anna.told.events.contains {
        if case .upload(chat, sent.id, let done, let total) = $0 {
          done == total && total > 2_500_000
        } else {
          false
        }
      })
    await ben.told.when { $0.rows.values.contains { $0[sent.id] != nil } }
    let row = try #require(ben.told.rows.values.compactMap { $0[sent.id] }.first)
    let descriptor = try #require(row.attachment)
    #expect(row.caption == "look" && descriptor.filename == "a.jpg")
    #expect(try await all(ben.shell.download(descriptor)) == file)
    #expect(try spool(anna).isEmpty && spool(ben).isEmpty)
    await anna.shell.close()
    await ben.shell.close()
  }

  @Test(
    "S0-46: a descriptor with another hash opens nothing: integrity_failed, and nothing stays in the spool")
  func wrongHash() async throws {
    let (anna, ben) = (try await ChatApp(server, "anna"), try await ChatApp(server, "ben"))
    let chat = try await anna.chat(with: ben)
    let sent = try await anna.shell.sendFile(
      OutgoingFile(.bytes(bytes(10_000)), kind: .file, filename: "a", mimeType: "x/y"), to: chat)
    var descriptor = try #require(anna.told.rows[chat]?[sent.id]?.attachment)
    descriptor.cipherHash[0] ^= 1
    let wrong = descriptor
    #expect(await failure { _ = try await all(anna.shell.download(wrong)) } == .integrityFailed)
    #expect(try spool(anna).isEmpty)
    await anna.shell.close()
    await ben.shell.close()
  }

  @Test(
    "S3-14, S3-18: without a server the file waits sealed, also after a restart; its bytes can be read; then it goes"
  )
  func waits() async throws {
    let (anna, ben) = (try await ChatApp(server, "anna"), try await ChatApp(server, "ben"))
    let chat = try await anna.chat(with: ben)
    _ = try await anna.shell.send(.text(TextBody("first")), to: chat)
    server.kill()
    let file = bytes(70_000)
    let id = try await anna.shell.enqueueFile(
      OutgoingFile(.bytes(file), kind: .file, filename: "a", mimeType: "x/y"), to: chat)
    let row = try #require(anna.told.rows[chat]?[id])
    #expect(row.delivery == .pending)
    let stand = try #require(row.attachment)
    #expect(try await all(anna.shell.download(stand, of: id, in: chat)) == file)
    let name = try #require(spool(anna).first { !$0.contains(".") })
    let stored = try Data(
      contentsOf: URL(
        fileURLWithPath: MessagingShell.folder(of: anna.user, in: anna.runtime) + "/spool/" + name))
    #expect(stored.range(of: Data(file[..<32])) == nil)
    await anna.shell.close()
    try server.startAgain()
    try await anna.open()
    #expect(try await anna.shell.settled(id, in: chat).seq > 0)
    await ben.told.when { $0.rows.values.contains { $0[id] != nil } }
    let descriptor = try #require(ben.told.rows.values.compactMap { $0[id] }.first?.attachment)
    #expect(try await all(ben.shell.download(descriptor)) == file)
    #expect(try spool(anna).isEmpty)
    await anna.shell.close()
    await ben.shell.close()
  }
}
