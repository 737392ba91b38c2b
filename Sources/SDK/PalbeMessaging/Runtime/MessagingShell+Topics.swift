import Palbase
import PalbeChatCore
import PalbeUnits
import PalbeWire

/// A topic of the socket that the shell listens to.
struct Topic {
  let task: Task<Void, Never>
  /// The server's last reply on the connection that is up.
  var joined: (group: GroupID?, online: [UserID], typing: [DeviceID])?
  /// Who asked and has no answer yet.
  var waiting: [RequestID] = []
  /// Of a conversation.
  var group: GroupID?
}

/// The socket: who listens to the device's queue has a connection; conversations come with it.
extension MessagingShell {
  private var deviceTopic: String? { box.map { "messaging:device:\($0.engine.deviceName.device.text)" } }

  private static func topic(of groupID: [UInt8]) -> String {
    "messaging:conv:\(Base64.encode(groupID, alphabet: .url, padded: false))"
  }

  /// Listens to the device's queue, once the server knows the device.
  func listen() {
    guard isStarted, phase == .open, let box, box.engine.isEnrolled, let deviceTopic else { return }
    if topics[deviceTopic] == nil { topics[deviceTopic] = listen(to: deviceTopic) }
  }

  private func listen(to name: String) -> Topic {
    let items = runtime.realtime.items(of: name)
    return Topic(
      task: Task { [weak self] in
        for await item in items {
          guard let self else { return }
          await heard(item, on: name)
        }
      })
  }

  func topicRequest(_ request: EngineRequest) {
    switch request.request {
    case .subscribeDevice:
      // The engine asks when it is told of the connection, and that is told when the topic is there.
      post(.input(.response(request.id, .success(.subscribed(nil, online: [], typing: [])))))
    case .subscribe(let groupID):
      let name = Self.topic(of: groupID)
      var topic = topics[name] ?? listen(to: name)
      if let joined = topic.joined {
        post(
          .input(
            .response(
              request.id, .success(.subscribed(joined.group, online: joined.online, typing: joined.typing)))))
      } else {
        topic.waiting.append(request.id)
      }
      topics[name] = topic
    case .unsubscribe(let groupID):
      topics.removeValue(forKey: Self.topic(of: groupID))?.task.cancel()
      post(.input(.response(request.id, .success(.done))))
    default: break
    }
  }

  private func heard(_ item: RealtimeItem, on name: String) {
    guard phase == .open, topics[name] != nil else { return }
    let isDevice = name == deviceTopic
    switch item {
    case .joined(let reply):
      let joined = WireAnswers.subscribed(reply) ?? (nil, [], [])
      topics[name]?.joined = joined
      if let group = joined.group { topics[name]?.group = group }
      answer(name, .success(.subscribed(joined.group, online: joined.online, typing: joined.typing)))
      if isDevice { connected(true) }
    case .event(let event, let frame):
      if let live = WireAnswers.event(event, frame, in: topics[name]?.group) { post(.input(.live(live))) }
    case .interrupted:
      topics[name]?.joined = nil
      if isDevice { connected(false) }
    case .missed: if isDevice { post(.input(.live(.queueChanged))) }
    case .ended(let end): ended(name, end, isDevice: isDevice)
    }
  }

  private func answer(_ name: String, _ result: Result<ServerAnswer, ServerRefusal>) {
    for id in topics[name]?.waiting ?? [] { post(.input(.response(id, result))) }
    topics[name]?.waiting = []
  }

  private func ended(_ name: String, _ end: RealtimeEnd, isDevice: Bool) {
    answer(name, .failure(.unreachable))
    topics[name] = nil
    guard isDevice else { return }
    connected(false)
    switch end {
    case .deviceRevoked: post(.input(.live(.deviceRevoked)))
    // The session's own news say what follows.
    case .signedOut, .personChanged: break
    case .superseded, .notAMember, .groupReset, .refused, .other:
      let sleep = runtime.time.sleep
      let wait = runtime.time.jittered(.seconds(10))
      followers.append(
        Task { [weak self] in
          do { try await sleep(wait) } catch { return }
          await self?.listen()
        })
    }
  }

  private func connected(_ isUp: Bool) {
    if isUp {
      pollAt = nil
      pollWait = settings.firstPoll
    } else if isConnected {
      startPolling()
      isQueueShort = false
    }
    guard isUp || isConnected else { return }
    isConnected = isUp
    post(.input(.connection(isUp: isUp)))
  }

  // MARK: Without the socket

  /// The queue is looked at over HTTP, less and less often.
  func startPolling() {
    guard !isConnected, pollAt == nil else { return }
    pollWait = settings.firstPoll
    pollAt = runtime.time.now() + runtime.time.jittered(pollWait)
    post(.tick)
  }

  func poll() {
    guard !isConnected, phase == .open else { return pollAt = nil }
    pollWait = min(pollWait * 2, settings.longestPoll)
    pollAt = runtime.time.now() + runtime.time.jittered(pollWait)
    post(.input(.live(.queueChanged)))
  }
}
