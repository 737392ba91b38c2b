import Foundation
import PalbeLiveKit
import PalbeProtobuf
import PalbeSDP
import PalbeTestKit
import PalbeUnits
import PalbeWebServer
import Testing

@_spi(Testing) @testable import PalbeSFUServer

@Suite("Signaling over a real WebSocket (LiveKit protocol 1.2)", .timeLimit(.minutes(2)))
struct SignalingTests {
  private func offer() throws -> String {
    String(decoding: try Vectors.golden("Tests/PalbeSDPTests/Fixtures/livekit-1.2.1-join.sdp"), as: UTF8.self)
  }

  @Test("the first frame is join, the second answers the offer that came with it")
  func joins() async throws {
    let server = try SFUServer.onLoopback()
    let offer = try offer()
    let client = try await SignalClient.connect(
      to: server, room: "hall", identity: "anna", request: JoinRequests.request(offer: offer))
    guard case .join(let join) = try await client.next() else {
      Issue.record("the first frame is no join")
      return
    }
    #expect(join.room?.name == "hall")
    #expect(join.participant?.identity == "anna")
    #expect(join.serverVersion == Release.version || join.serverInfo?.version == Release.version)
    #expect(join.pingInterval > 0 && join.pingTimeout > 0)
    let answer = try await client.first { if case .answer(let answer) = $0 { answer } else { nil } }
    #expect(answer.type == "answer")
    let description = try PalbeSDP.SessionDescription(parsing: answer.sdp)
    #expect(description.media.count == (try PalbeSDP.SessionDescription(parsing: offer)).media.count)
    let worker = RoomPlacement.worker(of: "hall", among: 2)
    let candidates = description.media.flatMap(\.candidates)
    #expect(candidates.contains { $0.contains(" 127.0.0.1 \(server.mediaAddresses[worker].port) typ host") })
  }

  @Test("ping is answered")
  func ping() async throws {
    let server = try SFUServer.onLoopback()
    let client = try await SignalClient.connect(to: server, room: "hall", identity: "anna")
    client.send(.pingReq(LiveKit.Ping()))
    let pong = try await client.first { if case .pongResp(let pong) = $0 { pong } else { nil } }
    #expect(pong.timestamp > 0)
  }

  @Test("1.1: after a client's first text frame both sides speak JSON; text that is none is passed over")
  func text() async throws {
    let server = try SFUServer.onLoopback()
    let client = try await SignalClient.connect(to: server, room: "hall", identity: "anna")
    _ = try await client.first { if case .join = $0 { true } else { nil } }
    client.socket.send(text: "no JSON")
    client.socket.send(text: "[]")
    client.socket.send(text: #"{"ping_req":{"timestamp":"123"},"unknown":{}}"#)
    let pong = try await client.firstText { if case .pongResp(let pong) = $0 { pong } else { nil } }
    #expect(pong.lastPingTimestamp == 123)
    // Binary still reads, and is answered as text.
    client.send(.pingReq(.with { $0.timestamp = 124 }))
    let second = try await client.firstText { if case .pongResp(let pong) = $0 { pong } else { nil } }
    #expect(second.lastPingTimestamp == 124)
    // The others are not changed by it.
    let bert = try await SignalClient.connect(to: server, room: "hall", identity: "bert")
    _ = try await bert.first { if case .join = $0 { true } else { nil } }
    let update = try await client.firstText { message -> LiveKit.ParticipantInfo? in
      guard case .update(let update) = message else { return nil }
      return update.participants.first { $0.identity == "bert" }
    }
    #expect(update.sid.hasPrefix("PA_"))
  }

  @Test("a socket that is killed takes its participant with it")
  func killed() async throws {
    let server = try SFUServer.onLoopback()
    let anna = try await SignalClient.connect(to: server, room: "hall", identity: "anna")
    let bert = try await SignalClient.connect(to: server, room: "hall", identity: "bert")
    let join = try await bert.first { if case .join(let join) = $0 { join } else { nil } }
    #expect(join.otherParticipants.map(\.identity) == ["anna"])
    anna.socket.disconnect()
    let gone = try await bert.first { message -> LiveKit.ParticipantInfo? in
      guard case .update(let update) = message else { return nil }
      return update.participants.first { $0.identity == "anna" && $0.state == .disconnected }
    }
    #expect(gone.identity == "anna")
  }

  @Test("100 join at once, in 10 rooms on 2 workers, and each sees the others of its room")
  func manyJoin() async throws {
    let server = try SFUServer.onLoopback()
    let counts = try await withThrowingTaskGroup(of: Int.self) { group in
      for index in 0..<100 {
        group.addTask {
          let client = try await SignalClient.connect(
            to: server, room: "room-\(index % 10)", identity: "participant-\(index)")
          let join = try await client.first { if case .join(let join) = $0 { join } else { nil } }
          var seen = Set(join.otherParticipants.map(\.identity))
          while seen.count < 9 {
            let joined = try await client.first { message -> [String]? in
              guard case .update(let update) = message else { return nil }
              return update.participants.map(\.identity)
            }
            seen.formUnion(joined.filter { $0 != "participant-\(index)" })
          }
          // Stays until all others of the room are here too.
          client.send(.pingReq(LiveKit.Ping()))
          _ = try await client.first { if case .pongResp = $0 { true } else { nil } }
          return seen.count
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(counts.count == 100)
    #expect(counts.allSatisfy { $0 == 9 })
  }

  @Test("malformed joins are refused with their status and the reason")
  func malformed() async throws {
    let server = try SFUServer.onLoopback()
    let token = Tokens.join(room: "hall", identity: "anna")
    for (path, status) in [
      ("/rtc/v1?access_token=\(token)", 400), ("/rtc/v1?access_token=\(token)&join_request=AAAA", 400),
      ("/rtc/v1?join_request=\(JoinRequests.item())", 401), ("/rtc", 401), ("/rtc/v2", 404),
    ] {
      await #expect {
        _ = try await WebSocketClient.connect(to: server.url + path)
      } throws: { error in
        guard case .refused(let got, let body) = error as? WebSocketClientError else { return false }
        return got == status && !body.isEmpty
      }
    }
  }

  @Test("stop tells everybody to leave, then closes")
  func stops() async throws {
    let server = try SFUServer.onLoopback()
    let client = try await SignalClient.connect(to: server, room: "hall", identity: "anna")
    _ = try await client.first { if case .join = $0 { true } else { nil } }
    let stopping = Task.detached { server.stop() }
    let leave = try await client.first { if case .leave(let leave) = $0 { leave } else { nil } }
    #expect(leave.reason == .serverShutdown)
    while try await client.next() != nil {}
    #expect([1_000, 1_001].contains(client.socket.closure?.code))
    await stopping.value
  }
}
