import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeUnits
import Testing

extension DataSuites {
  @Suite("An operator calls methods of participants (LiveKit protocol 2, PerformRpc)")
  struct RemoteCallTests {
    private let world: World
    private let alice: ScriptedClient
    private let bob: ScriptedClient

    init() throws {
      world = try World.withData()
      alice = try world.joinWithData("alice")
      bob = try world.joinWithData("bob")
    }

    /// The request as it came to alice.
    private func call(_ payload: String = "hello", timeout: UInt32 = 0) throws -> LiveKit.RpcRequest {
      let request = LiveKit.PerformRpcRequest.with {
        $0.room = "room"
        $0.destinationIdentity = "alice"
        $0.method = "greet"
        $0.payload = payload
        $0.responseTimeoutMs = timeout
      }
      let answered = world.answers.count
      world.handle(.command(CommandID(9), .call(request)))
      #expect(world.answers.count == answered)
      world.run(for: .milliseconds(200))
      let packet = try #require(alice.channels.packets().last)
      // Clients answer to whom the packet names, and refuse a call of nobody.
      #expect(!packet.participantIdentity.isEmpty && packet.destinationIdentities == ["alice"])
      guard case .rpcRequest(let call)? = packet.value else { throw CancellationError() }
      return call
    }

    private func answer(
      _ id: String, _ value: LiveKit.RpcResponse.Value?, from client: ScriptedClient
    ) throws {
      for value: LiveKit.DataPacket.Value in [
        .rpcAck(.with { $0.requestId = id }),
        .rpcResponse(
          .with {
            $0.requestId = id
            $0.value = value
          }),
      ] {
        let packet = LiveKit.DataPacket.with {
          $0.destinationIdentities = ["server"]
          $0.value = value
        }
        try world.send(packet, from: client)
      }
      world.run(for: .milliseconds(200))
    }

    @Test("the participant's answer is the operator's, and nobody else's")
    func answers() throws {
      let request = try call()
      #expect(request.method == "greet" && request.payload == "hello" && request.responseTimeoutMs == 10_000)
      #expect(request.version == 1 && request.id.utf8.count == 32)
      #expect(bob.channels.received.isEmpty)
      try answer(request.id, .payload("good day"), from: alice)
      #expect(world.answers == [.payload("good day")])
      #expect(bob.channels.received.isEmpty)
      // Once.
      try answer(request.id, .payload("again"), from: alice)
      #expect(world.answers.count == 1)
    }

    @Test("a method's error is passed on with its number")
    func errors() throws {
      let request = try call()
      let error = LiveKit.RpcError.with {
        $0.code = 1_400
        $0.message = "Method not supported at destination"
      }
      try answer(request.id, .error(error), from: alice)
      let expected = RoomRefusal.callFailed(code: 1_400, message: error.message, data: "")
      #expect(world.answers == [.refused(expected)])
    }

    @Test("somebody else cannot answer, even one who knows the number")
    func others() throws {
      let request = try call()
      try answer(request.id, .payload("forged"), from: bob)
      #expect(world.answers.isEmpty)
      try answer(request.id, .payload("true"), from: alice)
      #expect(world.answers == [.payload("true")])
    }

    @Test("without an answer the call ends with its time, at most 14 s; who leaves ends it at once")
    func silence() throws {
      _ = try call(timeout: 2_000)
      world.run(for: .seconds(1))
      #expect(world.answers.isEmpty)
      world.run(for: .seconds(1))
      #expect(world.answers == [.refused(.noAnswer)])
      #expect(try call(timeout: 3_600_000).responseTimeoutMs == 14_000)
      world.signal(.leave(LiveKit.LeaveRequest()), from: alice)
      #expect(world.answers.last == .refused(.noSuchParticipant))
      world.run(for: .seconds(20))
      #expect(world.answers.count == 2)
    }

    @Test("nobody there, too long, too many")
    func refused() throws {
      func refusal(_ change: (inout LiveKit.PerformRpcRequest) -> Void) -> RoomRefusal? {
        var request = LiveKit.PerformRpcRequest.with {
          $0.room = "room"
          $0.destinationIdentity = "alice"
        }
        change(&request)
        if case .refused(let reason)? = world.command(.call(request)) { return reason }
        return nil
      }
      #expect(refusal { $0.room = "other" } == .noSuchRoom)
      #expect(refusal { $0.destinationIdentity = "nobody" } == .noSuchParticipant)
      #expect(refusal { $0.payload = String(repeating: "x", count: 64_000) } == .tooLong(field: "payload"))
      for _ in 0..<1_024 { #expect(refusal { $0.method = "m" } == nil) }
      #expect(refusal { $0.method = "m" } == .tooManyCalls)
    }
  }
}
