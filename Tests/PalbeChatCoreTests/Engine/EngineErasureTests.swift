import PalbeChatKit
import PalbeMLS
import PalbeUnits
import Testing

@testable import PalbeChatCore

@Suite("Engine: keys that are gone, and bytes that go again")
struct EngineErasureTests {
  /// Whether a message can be opened once more, by a device's disk as it is.
  private func opens(_ blob: [UInt8], _ group: [UInt8], on disk: CrashingStorage) throws -> Bool {
    var settings = MLSConfiguration()
    settings.extensionTypes = [GroupShape.extensionType]
    settings.credentialPolicy = NamedDevices()
    let client = try #require(try disk.loadClient(configuration: settings))
    let stored = try StoredGroup.load(group, client: client, from: disk)
    guard var stored else { throw MLSStorageError.inconsistent }
    var opens = false
    do throws(StoredGroupError) {
      try stored.update { group throws(MLSError) in
        if case .application = try group.process(blob, at: 1_800_000_000) { opens = true }
        // Nothing of it stays.
        throw .state(.removed)
      }
    } catch {
      guard case .mls = error else { throw error }
    }
    return opens
  }

  @Test("S0-52, S0-55: when a row is acknowledged, the key that opened it is gone from the disk")
  func keyBeforeAcknowledgement() throws {
    let world = try ChatWorld(seed: 71)
    let anna = world.addPhone("anna")
    let ben = world.addPhone("ben")
    #expect(world.settle())
    let chat = try world.directChat(anna, with: ben.user)
    try world.send("first", from: anna, to: chat)
    #expect(world.settle())
    let bens = try #require(world.chat(ben, world.head(anna, chat)?.group))
    let groupID = try #require(world.head(ben, bens)?.groupID)

    // As many rows as the ratchet needs, so that one of them comes out of order too.
    var blobs: [[UInt8]] = []
    world.tampers = { phone, row in
      if phone === ben, case .message(_, let message) = row.content, message.kind == .application {
        blobs.append(message.blob)
      }
      return row
    }
    var seen: [Bool?] = []
    world.onRequest = { phone, request in
      guard phone === ben, case .acknowledge = request, let blob = blobs.last else { return }
      seen.append(try? opens(blob, groupID, on: ben.storage))
    }
    for text in ["second", "third"] {
      try world.send(text, from: anna, to: chat)
      #expect(world.settle())
    }
    #expect(world.texts(ben, bens) == ["first", "second", "third"])
    #expect(seen.count >= 2)
    #expect(seen.allSatisfy { $0 == false }, "\(seen)")
  }

  @Test("Section 3 #1, S3-18: what was encrypted goes again as the same bytes, also from the next process")
  func sameBytes() throws {
    let world = try ChatWorld(seed: 72)
    let anna = world.addPhone("anna")
    let ben = world.addPhone("ben")
    #expect(world.settle())
    let chat = try world.directChat(anna, with: ben.user)
    try world.send("first", from: anna, to: chat)
    #expect(world.settle())

    var sent: [ClientMessageID: [ServerMessage]] = [:]
    world.onRequest = { phone, request in
      if phone === anna, case .send(_, let message) = request {
        sent[message.id, default: []].append(message)
      }
    }
    world.losesAnswer = { phone, request in
      if phone === anna, case .send = request { true } else { false }
    }
    let id = try world.send("second", from: anna, to: chat)
    world.run(for: .seconds(5))
    world.restart(anna)
    world.run(for: .seconds(5))
    world.losesAnswer = nil
    #expect(world.settle())
    let messages = try #require(sent[id])
    #expect(messages.count >= 3 && Set(messages).count == 1)
    #expect(world.texts(anna, chat) == ["first", "second"])
    #expect(world.violations() == [])
  }
}
