import Foundation
import PalbeChatCore
import PalbeMessaging
import PalbeTestKit
import PalbeUnits
import Testing

@testable import Palbase

@MainActor @Suite("A shell's life", .serialized, .timeLimit(.minutes(3)))
struct ShellLifeTests {
  private let server: ChatServer

  init() throws { server = try ChatServer() }

  @Test("3 #1, #17: a process that is killed while it sends: every durable text is there once, in order")
  func killed() async throws {
    let anna = try await ChatApp(server, "anna", opens: false)
    let ben = try await ChatApp(server, "ben")
    let probe = try ToolProcess(
      "sdk-probe", ["chat", ben.user.text, "60"],
      environment: ["PALBE_CONFIG": anna.folder.path("config.plist")])
    var durable: [String] = []
    while durable.count < 25 {
      let line = probe.readLine().split(separator: " ")
      try #require(line.count == 2, "\(line)")
      durable.append("text \(line[0])")
    }
    probe.terminate(with: SIGKILL)
    let rest = probe.finish().output.split(separator: "\n").compactMap { $0.split(separator: " ").first }
    durable += rest.map { "text \($0)" }
    let count = durable.count
    try await anna.open()
    let chat = try await anna.shell.directChat(with: ben.user).id
    let last = try await anna.shell.send(.text(TextBody("end")), to: chat)
    await ben.told.when { $0.chat(with: "end") != nil }
    let other = try #require(ben.told.chat(with: "end"))
    let page = try await ben.shell.page(of: other, limit: 200)
    let texts = page.rows.compactMap(\.text)
    // One more may have become durable without having been said.
    #expect(Array(texts.prefix(count)) == durable)
    #expect(texts.last == "end" && (count + 1...count + 2).contains(texts.count))
    let own = try await anna.shell.page(of: chat, limit: 200)
    #expect(own.rows.compactMap(\.text) == texts && own.rows.allSatisfy { $0.delivery == .sent })
    #expect(own.rows.last?.id == last.id)
    await anna.shell.close()
    await ben.shell.close()
  }

  @Test(
    "S3-14, S3-18: the server goes and comes: what was written meanwhile arrives, by the socket that comes back"
  )
  func serverGone() async throws {
    let (anna, ben) = (try await ChatApp(server, "anna"), try await ChatApp(server, "ben"))
    let chat = try await anna.chat(with: ben)
    _ = try await anna.shell.send(.text(TextBody("one")), to: chat)
    await ben.told.when { $0.chat(with: "one") != nil }
    server.kill()
    let id = try await anna.shell.enqueue(.text(TextBody("two")), to: chat)
    #expect(anna.told.rows[chat]?[id]?.delivery == .pending)
    try server.startAgain()
    #expect(try await anna.shell.settled(id, in: chat).seq > 0)
    await ben.told.when { $0.chat(with: "two") != nil }
    await anna.shell.close()
    await ben.shell.close()
  }

  @Test("2.2: another shell has the account: account_busy; when it lets go the next one gets it")
  func busy() async throws {
    let anna = try await ChatApp(server, "anna")
    var settings = ShellSettings()
    settings.patience = .milliseconds(300)
    let runtime = try anna.runtime
    #expect(
      await failure {
        _ = try await MessagingShell.open(runtime, user: anna.user, settings: settings) { _ in }
      }
        == .accountBusy)
    await anna.shell.close()
    try await anna.open()
    #expect(await failure { _ = try await anna.shell.directChat(with: anna.user) } == nil)
    await anna.shell.close()
    #expect(await failure { _ = try await anna.shell.directChat(with: anna.user) } == .storeUnavailable)
  }

  @Test(
    "Sessions: signed out closes and keeps the stores; signed in again they are there, and another person's are others"
  )
  func sessions() async throws {
    let (anna, ben) = (try await ChatApp(server, "anna"), try await ChatApp(server, "ben"))
    let chat = try await anna.chat(with: ben)
    _ = try await anna.shell.send(.text(TextBody("one")), to: chat)
    try await anna.runtime.sessions.signOut()
    await anna.told.when { told in
      told.events.contains { if case .ended(.signedOut) = $0 { true } else { false } }
    }
    #expect(await failure { _ = try await anna.shell.page(of: chat, limit: 1) } == .notSignedIn)
    _ = try await anna.runtime.sessions.signIn(
      "sign-in", ["email": "anna@example.com", "password": "correct horse anna"])
    try await anna.open()
    #expect(try await anna.shell.page(of: chat, limit: 10).rows.compactMap(\.text) == ["one"])
    _ = try await anna.shell.send(.text(TextBody("two")), to: chat)
    await ben.told.when { $0.chat(with: "two") != nil }
    // Somebody else signs in over it.
    _ = try await anna.runtime.sessions.signIn(
      "sign-up", ["email": "cleo@example.com", "password": "correct horse cleo"])
    await anna.told.when { told in
      told.events.contains { if case .ended(.signedOut) = $0 { true } else { false } }
    }
    await ben.shell.close()
  }

  @Test("S0-100: what others see is asked of the server and changed in part")
  func prefs() async throws {
    let anna = try await ChatApp(server, "anna")
    #expect(try await anna.shell.commsPrefs() == StoredCommsPrefs())
    #expect(
      try await anna.shell.setCommsPrefs(sharePresence: false)
        == StoredCommsPrefs(sharePresence: false, shareReceipts: true))
    #expect(try await anna.shell.commsPrefs().sharePresence == false)
    await anna.shell.close()
  }

  @Test(
    "S0-109, S0-111: verified, then a new device of theirs: told once, and no longer verified, also after opening again"
  )
  func trust() async throws {
    let (anna, ben) = (try await ChatApp(server, "anna"), try await ChatApp(server, "ben"))
    let chat = try await anna.chat(with: ben)
    _ = try await anna.shell.send(.text(TextBody("one")), to: chat)
    let devices = try await anna.shell.safetyDevices(of: ben.user, in: chat)
    #expect(devices.count == 1)
    let hash = PalbeChatCore.SafetyNumber.deviceSetHash(PalbeChatCore.SafetyNumber.identityMaterial(devices))
    #expect(
      await failure { try await anna.shell.verify(ben.user, deviceSetHash: [1, 2], in: chat) }
        == .integrityFailed)
    try await anna.shell.verify(ben.user, deviceSetHash: hash, in: chat)
    #expect(try await anna.shell.trust(of: ben.user) == .verified(deviceSetHash: hash))
    let second = try await ChatApp(server, "ben", opens: false, signsIn: true)
    try await second.open()
    await anna.told.when { told in
      told.events.contains { if case .trustChanged(_, .changed) = $0 { true } else { false } }
    }
    guard case .changed(let change) = try await anna.shell.trust(of: ben.user) else {
      Issue.record("still verified")
      return
    }
    #expect(change.added.count == 1 && change.removed.isEmpty && change.oldHash == hash)
    await anna.shell.close()
    try await anna.open()
    #expect(try await anna.shell.trust(of: ben.user) == .changed(change))
    await anna.shell.close()
    await ben.shell.close()
    await second.shell.close()
  }
}
