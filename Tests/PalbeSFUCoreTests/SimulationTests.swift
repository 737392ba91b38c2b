import PalbeICE
import PalbeLiveKit
import PalbeProtobuf
import PalbeSDP
import PalbeSFUCore
import PalbeUnits
import Testing

/// Faults that clients ask for in their own tests (livekit-protocol, `simulate`).
struct SimulationTests {
  private func simulate(
    _ world: World, _ scenario: LiveKit.SimulateScenario.Scenario, _ client: ScriptedClient
  ) {
    world.signal(.simulate(.with { $0.scenario = scenario }), from: client)
  }

  private func isAsked(_ client: ScriptedClient) -> Bool {
    client.messages.contains { if case .reconnect = $0 { true } else { false } }
  }

  @Test("speaker_update: everyone is told, and again when it ends")
  func speaker() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let carol = try world.client("carol")
    world.join(carol, grant: { $0.canSubscribe = false })
    try #require(world.connect(carol))
    func speakers(_ client: ScriptedClient) -> [LiveKit.SpeakerInfo] {
      client.messages.flatMap { message -> [LiveKit.SpeakerInfo] in
        if case .speakersChanged(let change) = message { change.speakers } else { [] }
      }
    }
    simulate(world, .speakerUpdate(0), alice)
    simulate(world, .speakerUpdate(100_000), alice)
    #expect(speakers(alice).isEmpty)
    simulate(world, .speakerUpdate(3), alice)
    world.run(for: .milliseconds(2_900))
    for client in [alice, bob, carol] { #expect(speakers(client).map(\.active) == [true]) }
    world.run(for: .milliseconds(200))
    for client in [alice, bob, carol] {
      #expect(speakers(client).map(\.active) == [true, false])
      #expect(speakers(client).allSatisfy { $0.sid == alice.join?.participant?.sid })
    }
  }

  @Test("node_failure: gone without a word; who tries to resume must begin anew")
  func nodeFailure() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    simulate(world, .nodeFailure(false), alice)
    #expect(!alice.isClosed)
    simulate(world, .nodeFailure(true), alice)
    #expect(alice.isClosed && alice.leaves.isEmpty)
    #expect(bob.updates(of: "alice").last?.state == .disconnected)
    world.resume(alice)
    #expect(alice.leaves.map(\.action) == [.reconnect] && alice.leaves.map(\.reason) == [.stateMismatch])
  }

  @Test("migration: the session goes on after a resume, and nobody else sees anything")
  func migration() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let told = bob.updates(of: "alice").count
    simulate(world, .migration(true), alice)
    #expect(alice.leaves.isEmpty && alice.isClosed)
    world.resume(alice)
    #expect(isAsked(alice) && !alice.isClosed)
    let before = bob.packets(payloadType: 96).count
    try ForwardingTests.send(2, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    #expect(bob.packets(payloadType: 96).count == before + 4)
    #expect(bob.updates(of: "alice").count == told)
  }

  @Test("server_leave and leave_request_full_reconnect: told to leave, or to begin anew")
  func leaving() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    simulate(world, .serverLeave(true), alice)
    #expect(alice.leaves.map(\.action) == [.disconnect] && alice.leaves.map(\.reason) == [.serverShutdown])
    simulate(world, .leaveRequestFullReconnect(true), bob)
    #expect(bob.leaves.map(\.action) == [.reconnect] && bob.leaves.first?.canReconnect == true)
    #expect(alice.isClosed && bob.isClosed)
  }

  @Test("switch_candidate_protocol: TCP alone from the next session on, for who asked; TLS asks for a relay")
  func candidates() throws {
    let world = try World {
      $0.candidates = [World.server, World.server.overTCP]
      $0.turnServers = [TURNServer(url: "turns:turn.example:443", secret: "secret", lifetime: .seconds(60))]
    }
    func protocols(_ client: ScriptedClient) -> [Bool] {
      let lines = client.answer?.media.flatMap(\.candidates) ?? []
      return lines.map { $0.uppercased().contains(" TCP ") }
    }
    func join(_ identity: String) throws -> ScriptedClient {
      let client = try world.client(identity)
      world.join(client)
      return client
    }
    let first = try join("alice")
    #expect(protocols(first) == [false, true])
    simulate(world, .switchCandidateProtocol(.tcp), first)
    let second = try join("alice")
    #expect(protocols(second) == [true] && second.join?.clientConfiguration == nil)
    #expect(protocols(try join("bob")) == [false, true])
    simulate(world, .switchCandidateProtocol(.tls), second)
    let third = try join("alice")
    #expect(protocols(third) == [true])
    #expect(third.join?.clientConfiguration?.forceRelay == .enabled)
    simulate(world, .switchCandidateProtocol(.udp), third)
    #expect(protocols(try join("alice")) == [false, true])
  }

  @Test("subscriber_bandwidth: what does not fit is paused until the limit ends")
  func bandwidth() throws {
    let world = try World { $0.controlsCongestion = false }
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    world.join(alice)
    let bob = try world.client("bob")
    world.join(bob, request: { $0.connectionSettings?.subscriberAllowPause = true })
    try #require(world.connect(alice) && world.connect(bob))
    func states() -> [LiveKit.StreamState] {
      bob.messages.flatMap { message -> [LiveKit.StreamState] in
        if case .streamStateUpdate(let update) = message { update.streamStates.map(\.state) } else { [] }
      }
    }
    try ForwardingTests.send(60, from: alice, track: 0, in: world)
    #expect(states().isEmpty)
    simulate(world, .subscriberBandwidth(1_000), bob)
    try ForwardingTests.send(60, from: alice, track: 0, in: world)
    #expect(states() == [.paused])
    simulate(world, .subscriberBandwidth(0), bob)
    try ForwardingTests.send(60, from: alice, track: 0, in: world)
    #expect(states() == [.paused, .active])
  }

  @Test("disconnect_signal_on_resume: the next resume is answered and cut, the one after it lasts")
  func cutAfterAnswer() throws {
    let world = try World()
    let (_, bob) = try call(world)
    simulate(world, .disconnectSignalOnResume(true), bob)
    world.cut(bob)
    bob.messages = []
    world.resume(bob)
    #expect(isAsked(bob) && bob.isClosed)
    bob.messages = []
    world.resume(bob)
    #expect(isAsked(bob) && !bob.isClosed)
    // One that comes late is not cut.
    simulate(world, .disconnectSignalOnResume(true), bob)
    world.run(for: .seconds(6))
    world.cut(bob)
    world.resume(bob)
    #expect(!bob.isClosed)
  }

  @Test("disconnect_signal_on_resume_no_messages: three resumes are cut before their answer")
  func cutBeforeAnswer() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    simulate(world, .disconnectSignalOnResumeNoMessages(true), bob)
    world.cut(bob)
    bob.messages = []
    for _ in 0..<3 {
      world.resume(bob)
      #expect(bob.messages.isEmpty && bob.isClosed)
    }
    world.resume(bob)
    #expect(isAsked(bob) && !bob.isClosed)
    #expect(alice.updates(of: "bob").allSatisfy { $0.state != .disconnected })
  }
}
