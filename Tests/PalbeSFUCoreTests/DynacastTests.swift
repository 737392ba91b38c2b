import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits
import Testing

@testable import PalbeSFUCore

struct DynacastTests {
  @Test("dynacast: more is told at once, less after 5 s, and what comes back in between not at all")
  func timing() {
    var dynacast = Dynacast()
    var now = Instant.zero
    func told(_ rank: Int) -> Bool { dynacast.update(wanted: rank, at: now) }
    #expect(!told(2))
    #expect(!told(0))
    now += .seconds(4)
    #expect(!told(0))
    #expect(!told(2))
    now += .seconds(4)
    #expect(!told(0))
    now += .seconds(5)
    #expect(told(0))
    #expect(!told(0))
    #expect(told(1))
    #expect(dynacast.nextDeadline == nil)
  }

  private func updates(_ client: ScriptedClient) -> [[Bool]] {
    client.messages.compactMap { message in
      guard case .subscribedQualityUpdate(let update) = message else { return nil }
      return update.subscribedCodecs.first?.qualities.map(\.enabled)
    }
  }

  @Test("subscribed_quality_update: follows what subscribers ask for and whether there are any")
  func layers() throws {
    let world = try World()
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    world.join(
      alice,
      request: { request in
        request.addTrackRequests[0].layers = (0...2).map { rank in
          .with {
            $0.quality = LiveKit.VideoQuality(rawValue: Int32(rank))
            $0.width = UInt32(320 << rank)
            $0.height = UInt32(180 << rank)
          }
        }
      })
    #expect(world.connect(alice))
    world.run(for: .seconds(6))
    #expect(updates(alice) == [[false, false, false]])
    let bob = try world.client("bob")
    world.join(bob)
    #expect(world.connect(bob))
    world.run(for: .seconds(1))
    #expect(updates(alice).last == [true, true, true])
    let sid = alice.updates(of: "alice").last?.tracks.first?.sid ?? ""
    world.signal(
      .trackSetting(
        .with {
          $0.trackSids = [sid]
          $0.width = 320
          $0.height = 180
        }), from: bob)
    world.run(for: .seconds(4))
    #expect(updates(alice).count == 2)
    world.run(for: .seconds(2))
    #expect(updates(alice).last == [true, false, false])
    world.signal(
      .trackSetting(
        .with {
          $0.trackSids = [sid]
          $0.quality = .high
        }), from: bob)
    world.run(for: .milliseconds(10))
    #expect(updates(alice).last == [true, true, true])
    world.signal(.leave(LiveKit.LeaveRequest()), from: bob)
    world.run(for: .seconds(6))
    #expect(updates(alice).last == [false, false, false])
  }

  @Test("A track of one layer is never told which layers are wanted")
  func single() throws {
    let world = try World()
    let (alice, _) = try call(world)
    world.run(for: .seconds(10))
    #expect(updates(alice).isEmpty)
  }
}
