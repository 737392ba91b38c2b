import Palbase
import PalbeChatClient
import PalbeChatCore
import PalbeMLS
import PalbeMessaging
import PalbeUnits
import Synchronization

/// A device with many long chats that opens its stores.
enum ColdStart {
  struct Result {
    /// Records that were read when the list was there.
    var reads = 0
    var listed = 0
    var milliseconds = 0.0
    /// To read and open the same records, and nothing else.
    var floorMilliseconds = 0.0
  }

  static func run(
    _ world: ChatWorld, chats: Int, messages: Int, progress: (String) -> Void
  ) async throws -> Result {
    let folder = world.folder.file("cold")
    let peer = try PassiveMember(port: world.server.port, email: "cold-peer@example.org", seed: 1)
    var settings = ShellSettings()
    settings.isDurable = false
    settings.folder = folder + "/chats"
    let client = try await ChatClient.open(
      server: world.server.address, folder: folder, email: "cold@example.org", settings: settings,
      sink: { _ in })
    await client.shell.start()
    try await client.shell.waitUntilEnrolled()
    for index in 0..<chats {
      if index % 20 == 0 { progress("cold start: chat \(index) of \(chats)") }
      let chat = try await client.shell.groupChat(title: "chat \(index)", members: [peer.user]).id
      _ = try await client.shell.send(.text(TextBody("m")), to: chat)
    }
    await client.shell.close()
    try fill(folder + "/chats", client, peer.user, messages, progress)
    progress("cold start: opening")
    return try await open(folder, client, world, settings)
  }

  /// Rows as the queue would have brought them.
  private static func fill(
    _ folder: String, _ client: ChatClient, _ peer: UserID, _ messages: Int, _ progress: (String) -> Void
  ) throws {
    let random = RandomSource(seed: 21)
    let storage = try SealedStorage(
      folder: folder, user: client.user, vault: client.runtime.vault, opening: .existing, random: random,
      isDurable: false)
    defer { storage.close() }
    var ids = random
    let now = ChatTime(
      wall: WallTime(microseconds: client.runtime.time.wallMilliseconds() * 1_000),
      instant: client.runtime.time.now(), boot: 1)
    let me = DeviceName(user: client.user, device: DeviceID(at: now.wall, using: &ids))
    let sender = DeviceName(user: peer, device: DeviceID(at: now.wall, using: &ids))
    let summaries = try ChatSummary.all(in: storage)
    for (index, summary) in summaries.enumerated() {
      if index % 20 == 0 { progress("cold start: messages of chat \(index) of \(summaries.count)") }
      guard var transcript = try Transcript.load(summary.chat, me: me, from: storage) else { continue }
      try storage.begin()
      for seq in 0..<messages {
        var transaction = MLSTransaction()
        let envelope = Envelope(
          id: ClientMessageID(at: now.wall, using: &ids), sentAt: now.wall,
          content: .text(TextBody("message \(seq) of a long chat")))
        _ = try transcript.apply(
          Incoming(
            seq: summary.lastSeq + Int64(seq) + 1, sender: sender, epoch: 1, receivedAt: now,
            serverAt: now.wall,
            envelope: envelope), in: &transaction)
        try storage.apply(transaction)
      }
      try storage.commit()
    }
  }

  private static func open(
    _ folder: String, _ client: ChatClient, _ world: ChatWorld, _ settings: ShellSettings
  ) async throws -> Result {
    let listed = Mutex((count: 0, reads: 0, at: UInt64(0)))
    let start = nanoseconds()
    let shell = try await MessagingShell.open(
      client.runtime, user: client.user, settings: settings,
      sink: { events in
        for case .chats(let chats, isAll: true) in events {
          let reads = OpenStorages.tally(in: folder + "/chats").reads
          listed.withLock { $0 = (chats.count, reads, nanoseconds()) }
        }
      })
    while listed.withLock({ $0.at }) == 0 { try await Task.sleep(for: .milliseconds(1)) }
    var result = Result()
    let seen = listed.withLock { $0 }
    (result.reads, result.listed) = (seen.reads, seen.count)
    result.milliseconds = Double(seen.at - start) / 1e6
    await shell.close()
    let storage = try SealedStorage(
      folder: folder + "/chats", user: client.user, vault: client.runtime.vault, opening: .existing,
      random: RandomSource(seed: 22), isDurable: false)
    let begun = nanoseconds()
    _ = try ChatSummary.all(in: storage)
    result.floorMilliseconds = Double(nanoseconds() - begun) / 1e6
    storage.close()
    return result
  }
}
