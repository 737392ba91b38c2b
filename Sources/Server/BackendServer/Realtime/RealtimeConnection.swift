import PalbeAccountsCore
import PalbeBackendCore
import PalbeEventLoop
import PalbeUnits
import PalbeWebServer
import Synchronization

/// One socket of a device.
final class RealtimeConnection: WebSocketHandler {
  /// What several threads touch.
  private struct State {
    var session: VerifiedSession
    /// The last heartbeat; before the first, the beginning.
    var heard: Instant
    /// Frames that wait for the backend.
    var waitingCount = 0
    /// The topics of the conversations that it hears.
    var topics: [GroupID: String] = [:]
  }

  /// Frames of one socket that wait for the backend at once.
  static let waitingLimit = 64

  let socket: WebSocket
  let id: ConnectionID
  let caller: Caller
  private let hub: RealtimeHub
  private let state: Mutex<State>

  init(socket: WebSocket, session: VerifiedSession, device: DeviceID, hub: RealtimeHub) {
    self.socket = socket
    self.hub = hub
    id = ConnectionID(socket.id)
    caller = Caller(user: session.user, device: device)
    state = Mutex(State(session: session, heard: MonotonicClock.now()))
  }

  // MARK: The web server's thread

  func opened() {
    // Whether the device is still enrolled is for the backend to say; with it the connection counts as present.
    hub.ask(BackendCall(.heartbeat(id), from: caller)) { [self] result in
      if case .failure(let failure) = result { refused(nil, failure) }
    }
  }

  func received(binary: [UInt8]) {
    send(RealtimeText.error(nil, .invalid("body", "frames are text")))
  }

  func received(text: String) {
    let frame: RealtimeFrame
    do throws(RealtimeFrame.Refusal) { frame = try RealtimeFrame(text) } catch {
      return send(RealtimeText.error(error.id, error.error))
    }
    let request: BackendRequest
    switch frame.wish {
    case .renew(let token): return renew(token, frame.id ?? 0)
    case .heartbeat:
      state.withLock { $0.heard = MonotonicClock.now() }
      request = .heartbeat(id)
    case .subscribe(let topic): request = .subscribe(id, topic)
    case .unsubscribe(let topic): request = .unsubscribe(id, topic)
    case .typing(let group, let isOn): request = .setTyping(id, group, isOn)
    case .acknowledge(let rows): request = .acknowledge(rows, connection: id)
    case .fetch(let after, let limit): request = .fetchQueue(after: after, limit: limit, connection: id)
    }
    let isTaken = state.withLock { state in
      guard state.waitingCount < Self.waitingLimit else { return false }
      state.waitingCount += 1
      return true
    }
    guard isTaken else { return refused(frame.id, .rateLimited(retryAfter: .seconds(1))) }
    hub.ask(BackendCall(request, from: caller)) { [self] result in
      state.withLock { $0.waitingCount -= 1 }
      answer(frame, result)
    }
  }

  func closed(_ closure: WebSocketClosure) { hub.closed(self) }

  private func renew(_ token: String, _ id: Int64) {
    let new: VerifiedSession
    do throws(BackendFailure) { new = try hub.verifier.session(token: token) } catch {
      return refused(id, error)
    }
    let isSame = state.withLock { state in
      // A socket stays the session's that opened it.
      guard new.user == state.session.user, new.session == state.session.session else { return false }
      if new.deadline > state.session.deadline { state.session = new }
      return true
    }
    guard isSame else {
      return send(RealtimeText.error(id, .invalid("access_token", "the token is of another session")))
    }
    send(RealtimeText.reply(id) { $0.member("access_expires_at_ms", new.expiresAt) })
  }

  // MARK: The loop's thread

  private func answer(_ frame: RealtimeFrame, _ result: Result<BackendResponse, BackendFailure>) {
    let response: BackendResponse
    switch result {
    case .success(let success): response = success
    case .failure(let failure): return refused(frame.id, failure)
    }
    switch frame.wish {
    case .subscribe(let topic):
      if case .subscribed(let group?, _, _) = response {
        state.withLock { $0.topics[group] = topic.text }
      }
    case .unsubscribe(.conversation(let mlsID)):
      let text = TopicName.conversation(mlsID).text
      state.withLock { state in state.topics = state.topics.filter { $0.value != text } }
    default: break
    }
    guard let id = frame.id else { return send(RealtimeText.heartbeat) }
    send(
      RealtimeText.reply(id) { json in
        if case .subscribe(let topic) = frame.wish { json.member("topic", topic.text) }
        response.write(into: &json)
      })
  }

  private func refused(_ id: Int64?, _ failure: BackendFailure) {
    send(RealtimeText.error(id, APIError(failure)))
    switch failure {
    case .deviceRevoked: socket.close(code: RealtimeHub.CloseCode.deviceRevoked, reason: failure.code)
    case .deviceNotEnrolled: socket.close(code: RealtimeHub.CloseCode.sessionOver, reason: failure.code)
    default: break
    }
  }

  /// The text of a topic that the connection hears.
  func text(of topic: Topic) -> String? {
    switch topic {
    case .device(let device): TopicName.device(device).text
    case .conversation(let group): state.withLock { $0.topics[group] }
    }
  }

  func ended(_ topic: Topic, _ reason: SubscriptionEnd) {
    if let text = text(of: topic) { send(RealtimeText.ended(text, reason)) }
    if case .conversation(let group) = topic { state.withLock { $0.topics[group] = nil } }
    if case .device = topic, reason == .deviceRevoked {
      socket.close(code: RealtimeHub.CloseCode.deviceRevoked, reason: "device_revoked")
    }
  }

  // MARK: Any thread

  /// Sends, or ends the socket of who reads too slowly.
  func send(_ text: String) {
    guard
      socket.queuedByteCount + text.utf8.count <= hub.settings.slowByteCount || socket.queuedByteCount == 0
    else {
      hub.counts.withLock { $0.slowCount += 1 }
      return socket.abort(code: RealtimeHub.CloseCode.tryLater, reason: "reads too slowly")
    }
    socket.send(text: text)
  }

  var session: VerifiedSession { state.withLock { $0.session } }
  var heard: Instant { state.withLock { $0.heard } }
}
