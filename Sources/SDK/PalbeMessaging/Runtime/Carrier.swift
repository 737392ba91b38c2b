import Foundation
import Palbase
import PalbeChatCore
import PalbeUnits

/// Takes one question of the engine to the server, once, and brings back what came of it.
struct Carrier: Sendable {
  let runtime: PalbaseRuntime
  let user: UserID

  /// Over HTTP; only for what has a route.
  func carry(_ request: EngineRequest) async -> Result<ServerAnswer, ServerRefusal> {
    guard
      var call = WireRequests.call(
        request.request, key: request.idempotencyKey, freshKey: { UUID().uuidString.lowercased() })
    else { return .success(.done) }
    call.userId = user.text
    let answer: BackendAnswer
    do { answer = try await runtime.client.send(call) } catch {
      return .failure(WireRequests.refusal(error))
    }
    if case .enrol = request.request {
      guard let enrolled = WireAnswers.enrolled(answer.body) else { return .failure(.unreachable) }
      let credential = DeviceCredential(deviceId: enrolled.device.text, token: enrolled.token)
      do { try runtime.devices.set(credential, of: user.text) } catch { return .failure(.unreachable) }
      return .success(.enrolled(enrolled.device))
    }
    // Whether it arrived is not known, as without an answer.
    guard let value = WireRequests.answer(to: request.request, answer.body) else {
      SDKLog.note("the server's answer makes no sense: \(call.method) \(call.path)")
      return .failure(.unreachable)
    }
    return .success(value)
  }

  /// Over the socket.
  func carry(_ frame: RealtimeFrame, for request: ServerRequest) async -> Result<ServerAnswer, ServerRefusal>
  {
    do {
      let reply = try await runtime.realtime.request(frame)
      guard let answer = WireRequests.answer(to: request, reply) else { return .failure(.unreachable) }
      return .success(answer)
    } catch { return .failure(WireRequests.refusal(error)) }
  }
}
