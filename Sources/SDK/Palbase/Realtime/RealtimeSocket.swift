import Foundation
import PalbeUnits
import PalbeWebServer
import Synchronization

/// An open connection of the realtime socket.
package protocol RealtimeLink: Sendable {
  /// The next message, for one reader; nil when the link has ended.
  func nextText() async -> String?
  func send(_ text: String)
  func close()
  /// How it ended: the close code and its reason.
  var closure: (code: UInt16, reason: String) { get }
}

/// Opens connections.
package protocol RealtimeConnector: Sendable {
  func connect(
    to url: String, headers: [TransportRequest.Field]
  ) async throws(RealtimeConnectError) -> any RealtimeLink
}

/// Why there is no connection.
package enum RealtimeConnectError: Error, Sendable, Equatable {
  case refused(status: Int, body: [UInt8])
  case failed
}

/// The one realtime connection of a person, shared by everybody who listens: opened with the first subscription, opened
/// again when it breaks, closed when they sign out.
package actor RealtimeSocket {
  private let sessions: SessionAuthority
  private let devices: DeviceRegistry
  private let connector: any RealtimeConnector
  private let url: String
  private let time: Timebase

  private var machine: RealtimeMachine
  private var links: [UInt64: any RealtimeLink] = [:]
  private var buffers: [UInt64: ItemBuffer] = [:]
  private var waiters: [UInt64: CheckedContinuation<[UInt8], any Error>] = [:]
  private var requestCount: UInt64 = 0
  private var timer: (deadline: Instant, task: Task<Void, Never>)?
  private var followers: [Task<Void, Never>] = []
  private static let subscriptionCount = Atomic<UInt64>(0)

  package init(
    server: ServerURL, sessions: SessionAuthority, devices: DeviceRegistry, connector: any RealtimeConnector,
    time: Timebase
  ) {
    url = server.realtime
    self.sessions = sessions
    self.devices = devices
    self.connector = connector
    self.time = time
    machine = RealtimeMachine(random: time.randomSource)
  }

  deinit {
    for follower in followers { follower.cancel() }
    timer?.task.cancel()
    for link in links.values { link.close() }
    for buffer in buffers.values { buffer.finish() }
    for waiter in waiters.values { waiter.resume(throwing: BackendError.unreachable(.connectionLost)) }
  }

  // MARK: For the modules above

  /// What happens on a topic, such as `messaging:conv:<rfc group id>`. Who lets go of the stream unsubscribes.
  package nonisolated func items(of topic: String) -> AsyncStream<RealtimeItem> {
    let id = Self.subscriptionCount.wrappingAdd(1, ordering: .relaxed).newValue
    let buffer = ItemBuffer()
    let token = SubscriptionToken { [weak self] in
      buffer.finish()
      Task { [weak self] in await self?.unsubscribe(id) }
    }
    Task { await subscribe(id, topic, buffer, token) }
    return AsyncStream(unfolding: { [token] in await token.next(buffer) }, onCancel: { token.end() })
  }

  /// Sends a frame and gives the server's reply. Without a connection it throws `unreachable`.
  @discardableResult
  package func request(_ frame: RealtimeFrame) async throws -> [UInt8] {
    requestCount += 1
    let id = requestCount
    return try await withCheckedThrowingContinuation { continuation in
      waiters[id] = continuation
      machine.request(id, frame, at: time.now())
      act()
    }
  }

  // MARK: Inputs

  private func subscribe(_ id: UInt64, _ topic: String, _ buffer: ItemBuffer, _ token: SubscriptionToken) {
    guard !token.isEnded else { return }
    follow()
    updateCredentials()
    buffers[id] = buffer
    machine.subscribe(id, to: topic, at: time.now())
    act()
  }

  private func unsubscribe(_ id: UInt64) {
    buffers[id] = nil
    machine.unsubscribe(id, at: time.now())
    act()
  }

  private func follow() {
    guard followers.isEmpty else { return }
    let tokens = sessions.tokens.stream()
    let changes = devices.changes.stream()
    followers = [
      Task { [weak self] in for await _ in tokens { await self?.updateCredentials() } },
      Task { [weak self] in for await _ in changes { await self?.updateCredentials() } },
    ]
  }

  private func updateCredentials() {
    let credentials = sessions.tokens.value.map { token in
      RealtimeMachine.Credentials(
        userId: token.userId, accessToken: token.text, renewal: token.renewal,
        device: try? devices.credential(of: token.userId))
    }
    machine.setCredentials(credentials, at: time.now())
    act()
  }

  private func opened(_ id: UInt64, _ link: any RealtimeLink) {
    links[id] = link
    machine.linkOpened(id, at: time.now())
    act()
  }

  private func received(_ id: UInt64, _ text: String) {
    machine.received(id, text, at: time.now())
    act()
  }

  private func ended(_ id: UInt64, _ end: RealtimeMachine.LinkEnd) {
    links[id] = nil
    machine.linkEnded(id, end, at: time.now())
    act()
  }

  private func timeout() {
    timer = nil
    machine.handleTimeout(at: time.now())
    act()
  }

  // MARK: Actions

  private func act() {
    while let action = machine.pollAction() { perform(action) }
    guard let deadline = machine.nextDeadline else {
      timer?.task.cancel()
      timer = nil
      return
    }
    guard timer?.deadline != deadline else { return }
    timer?.task.cancel()
    let wait = max(.zero, deadline - time.now())
    let sleep = time.sleep
    timer = (
      deadline,
      Task { [weak self] in
        do { try await sleep(wait) } catch { return }
        await self?.timeout()
      }
    )
  }

  private func perform(_ action: RealtimeMachine.Action) {
    switch action {
    case .connect(let id, let credentials): connect(id, credentials)
    case .send(let id, let text): links[id]?.send(text)
    case .close(let id): links.removeValue(forKey: id)?.close()
    case .deliver(let id, let item):
      buffers[id]?.push(item)
      if case .ended = item { buffers[id] = nil }
    case .answer(let id, let result):
      waiters.removeValue(forKey: id)?.resume(with: result.mapError { $0 as any Error })
    case .renewToken(let used):
      let sessions = sessions
      Task { try? await sessions.accessToken(replacing: used) }
    case .enrol(let device, let userId):
      let devices = devices
      Task { try? await devices.credential(of: userId, replacing: device) }
    case .markRevoked(let device, let userId): devices.markRevoked(device, of: userId)
    }
  }

  private func connect(_ id: UInt64, _ credentials: RealtimeMachine.Credentials) {
    var headers = [SessionAuthority.authorization(credentials.accessToken)]
    if let device = credentials.device { headers.append(.init("Palbe-Device", device.token)) }
    let (connector, url, all) = (connector, url, headers)
    Task { [weak self] in
      let link: any RealtimeLink
      do throws(RealtimeConnectError) {
        link = try await connector.connect(to: url, headers: all)
      } catch {
        await self?.ended(id, Self.end(error))
        return
      }
      // Not held while nothing comes: who lets go of the socket closes it.
      await self?.opened(id, link)
      while let text = await link.nextText() { await self?.received(id, text) }
      let closure = link.closure
      await self?.ended(id, .closed(code: closure.code, reason: closure.reason))
    }
  }

  private static func end(_ error: RealtimeConnectError) -> RealtimeMachine.LinkEnd {
    switch error {
    case .failed: return .failed
    case .refused(let status, let body):
      // Over TLS there is no body, and nothing is known but the status.
      let code = body.isEmpty ? nil : ServerFailure(status: status, headers: [:], body: body).code
      return .refused(status: status, code: code)
    }
  }
}

/// Lives as long as a subscriber's stream.
private final class SubscriptionToken: Sendable {
  private let onEnd: @Sendable () -> Void
  private let isOver = Atomic<Bool>(false)

  init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }
  deinit { end() }

  var isEnded: Bool { isOver.load(ordering: .acquiring) }
  func end() { if !isOver.exchange(true, ordering: .acquiringAndReleasing) { onEnd() } }
  func next(_ buffer: ItemBuffer) async -> RealtimeItem? { await buffer.next() }
}

/// `RealtimeLink` over libwebsockets.
package struct WebSocketConnector: RealtimeConnector {
  private let trustedCertificateFile: String?

  package init(trustedCertificateFile: String?) { self.trustedCertificateFile = trustedCertificateFile }

  package func connect(
    to url: String, headers: [TransportRequest.Field]
  ) async throws(RealtimeConnectError) -> any RealtimeLink {
    var options = WebSocketClient.Options()
    options.headers = headers.map { .init($0.name, $0.value) }
    options.messageByteCount = ReceivedFrame.limit
    options.receiveQueueCount = 1_024
    options.trustedCertificateFile = trustedCertificateFile
    do throws(WebSocketClientError) {
      return Link(client: try await WebSocketClient.connect(to: url, options: options))
    } catch {
      switch error {
      case .refused(let status, let body): throw .refused(status: status, body: Array(body.utf8))
      default: throw .failed
      }
    }
  }

  private struct Link: RealtimeLink {
    let client: WebSocketClient

    func nextText() async -> String? {
      var messages = client.messages.makeAsyncIterator()
      while let message = await messages.next() {
        if case .text(let text) = message { return text }
      }
      return nil
    }

    func send(_ text: String) { client.send(text: text) }
    func close() { client.close() }
    var closure: (code: UInt16, reason: String) {
      client.closure.map { ($0.code, $0.reason) } ?? (1_006, "")
    }
  }
}
