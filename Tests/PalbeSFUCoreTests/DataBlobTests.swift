import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeUnits
import Testing

/// What a participant leaves with the server for the others (livekit-protocol, data blobs).
struct DataBlobTests {
  private func store(
    _ world: World, _ client: ScriptedClient, _ key: LiveKit.DataBlobKey.Key?, _ contents: [UInt8],
    id: UInt32 = 1
  ) {
    world.signal(
      .storeDataBlobRequest(
        .with {
          $0.requestId = id
          $0.blob = .with {
            $0.key = .with { $0.key = key }
            $0.contents = contents
          }
        }), from: client)
  }

  private func fetch(
    _ world: World, _ client: ScriptedClient, of identity: String, _ key: LiveKit.DataBlobKey.Key?
  ) -> LiveKit.GetDataBlobResponse? {
    world.signal(
      .getDataBlobRequest(
        .with {
          $0.requestId = 9
          $0.participantIdentity = identity
          $0.key = key.map { key in .with { $0.key = key } }
        }), from: client)
    if case .getDataBlobResponse(let response)? = client.messages.last { return response }
    return nil
  }

  @Test("stored under its key and fetched by others; the same key replaces it; gone with its participant")
  func stored() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let schema = LiveKit.DataBlobKey.Key.schemaId(.with { $0.name = "pose" })
    store(world, alice, schema, [1, 2, 3], id: 5)
    #expect(
      alice.messages.last
        == .storeDataBlobResponse(
          .with {
            $0.requestId = 5
            $0.key = .with { $0.key = schema }
          }))
    store(world, alice, .generic("pose"), [4])
    #expect(fetch(world, bob, of: "alice", schema)?.blob?.contents == [1, 2, 3])
    #expect(fetch(world, bob, of: "alice", .generic("pose"))?.blob?.contents == [4])
    #expect(fetch(world, alice, of: "alice", schema)?.requestId == 9)
    store(world, alice, schema, [7])
    #expect(fetch(world, bob, of: "alice", schema)?.blob?.contents == [7])
    world.signal(.leave(LiveKit.LeaveRequest()), from: alice)
    #expect(fetch(world, bob, of: "alice", schema) == nil)
    #expect(bob.refusals.last?.reason == .notFound && bob.refusals.last?.requestId == 9)
  }

  @Test("refused: no key, no contents, a long name, above 64,000 bytes, no permission, a hidden owner")
  func refused() throws {
    let world = try World()
    let alice = try world.client("alice")
    world.join(alice)
    let mute = try world.client("mute")
    world.join(mute, grant: { $0.canPublishData = false })
    let ghost = try world.client("ghost")
    world.join(ghost, grant: { $0.hidden = true })
    store(world, alice, nil, [1])
    store(world, alice, .generic(""), [1])
    store(world, alice, .generic(String(repeating: "k", count: 257)), [1])
    store(world, alice, .generic("empty"), [])
    store(world, alice, .generic("k"), [UInt8](repeating: 0, count: 63_999))
    store(world, alice, .generic("l"), [1])
    #expect(
      alice.refusals.map(\.reason) == [
        .invalidRequest, .invalidRequest, .invalidRequest, .invalidRequest, .limitExceeded,
      ])
    store(world, mute, .generic("k"), [1])
    #expect(mute.refusals.map(\.reason) == [.notAllowed])
    store(world, ghost, .generic("k"), [1])
    #expect(fetch(world, alice, of: "ghost", .generic("k")) == nil)
    #expect(fetch(world, ghost, of: "ghost", .generic("k")) != nil)
    _ = fetch(world, alice, of: "alice", nil)
    #expect(alice.refusals.suffix(2).map(\.reason) == [.notFound, .invalidRequest])
  }
}
