import PalbeUnits

/// What becomes of a request once it is durable.
extension Backend {
  mutating func apply(_ effect: Effect, at now: ServerTime) {
    switch effect {
    case .queued(let devices, let id, let reason):
      for device in devices {
        publish(.device(device), .queueChanged)
        guard let reason else { continue }
        let span = WakeSpan(device: device, group: reason.group, first: id, last: id, kind: reason.kind)
        live.wake(span, at: now.instant + limits.wakeDelay)
      }
    case .acknowledged(let device, let rows): live.acknowledged(rows, of: device)
    case .publish(let topic, let event): publish(topic, event)
    case .subscribedDevice(let connection, let caller, let shares):
      guard let device = caller.device else { return }
      live.open(connection, caller, device, sharesPresence: shares)
      if let older = live.consumers[device], older != connection {
        events.append(.subscriptionEnded(older, .device(device), .superseded))
      }
      live.consumers[device] = connection
      beat(connection, at: now.instant)
    case .subscribedConversation(let connection, let caller, let group, let shares):
      guard let device = caller.device else { return }
      live.open(connection, caller, device, sharesPresence: shares)
      beat(connection, at: now.instant)
      changePresence(of: caller.user, in: [group]) { live in
        live.listeners[group, default: []].insert(connection)
        live.connections[connection]?.conversations.insert(group)
      }
    case .unsubscribed(let connection, let topic): unsubscribe(connection, topic)
    case .heartbeat(let connection, let caller, let shares):
      guard let device = caller.device else { return }
      live.open(connection, caller, device, sharesPresence: shares)
      beat(connection, at: now.instant)
    case .typing(let connection, let caller, let group, let isOn):
      guard let device = caller.device else { return }
      setTyping(connection, caller.user, device, group, isOn ? now.instant + limits.typingLease : nil)
    case .sharesPresence(let user, let shares): setSharing(user, shares)
    case .userLeft(let group, let user):
      for connection in sorted(live.connectionsOfUser[user]) {
        end(connection, .conversation(group), .notAMember)
      }
    case .deviceRevoked(let device): revoked(device)
    case .conversationReset(let group):
      for connection in live.subscribers(of: .conversation(group)) {
        end(connection, .conversation(group), .groupReset)
      }
    }
  }

  /// The shell tells that a connection is gone.
  public mutating func connectionClosed(_ id: ConnectionID) {
    guard let connection = live.connections[id] else { return }
    for group in connection.conversations.sorted() { unsubscribe(id, .conversation(group)) }
    unsubscribe(id, .device(connection.device))
    live.connectionsOfUser[connection.user]?.remove(id)
    if live.connectionsOfUser[connection.user]?.isEmpty == true {
      live.connectionsOfUser[connection.user] = nil
    }
    live.connections[id] = nil
  }

  /// Tells a topic, where anybody listens.
  private mutating func publish(_ topic: Topic, _ event: RealtimeEvent) {
    if live.hasSubscribers(topic) { events.append(.publish(topic, event)) }
  }

  private func sorted(_ connections: Set<ConnectionID>?) -> [ConnectionID] {
    (connections ?? []).sorted { $0.rawValue < $1.rawValue }
  }

  // MARK: Subscriptions

  private mutating func end(_ connection: ConnectionID, _ topic: Topic, _ reason: SubscriptionEnd) {
    guard live.subscribers(of: topic).contains(connection) else { return }
    unsubscribe(connection, topic)
    events.append(.subscriptionEnded(connection, topic, reason))
  }

  private mutating func unsubscribe(_ id: ConnectionID, _ topic: Topic) {
    guard let connection = live.connections[id] else { return }
    switch topic {
    case .device(let device):
      if live.consumers[device] == id { live.consumers[device] = nil }
    case .conversation(let group):
      guard connection.conversations.contains(group) else { return }
      if live.typing[group]?[connection.device]?.connection == id {
        setTyping(id, connection.user, connection.device, group, nil)
      }
      changePresence(of: connection.user, in: [group]) { live in
        live.listeners[group]?.remove(id)
        if live.listeners[group]?.isEmpty == true { live.listeners[group] = nil }
        live.connections[id]?.conversations.remove(group)
      }
    }
  }

  private mutating func revoked(_ device: DeviceID) {
    live.wakes[device] = nil
    let all = live.connections.filter { $0.value.device == device }.map(\.key)
    for connection in all.sorted(by: { $0.rawValue < $1.rawValue }) {
      for group in live.connections[connection]?.conversations.sorted() ?? [] {
        end(connection, .conversation(group), .deviceRevoked)
      }
      // Told in any case: a connection of the device has nothing more to do here.
      unsubscribe(connection, .device(device))
      events.append(.subscriptionEnded(connection, .device(device), .deviceRevoked))
      connectionClosed(connection)
    }
  }

  // MARK: Presence and typing

  /// Makes a change, and tells the conversations in which it made a user appear or disappear.
  private mutating func changePresence(
    of user: UserID, in groups: [GroupID], _ change: (inout LiveState) -> Void
  ) {
    let before = groups.map { live.isOnline(user, in: $0) }
    change(&live)
    for (group, wasOnline) in zip(groups, before) {
      let isOnline = live.isOnline(user, in: group)
      if isOnline != wasOnline { publish(.conversation(group), .presence(user, isOnline: isOnline)) }
    }
  }

  /// A sign of life: the connection is present for another lease.
  private mutating func beat(_ id: ConnectionID, at now: Instant) {
    guard let connection = live.connections[id] else { return }
    let until = now + limits.presenceLease
    if connection.presentUntil == nil { live.timers.insert(.presence(id), at: until) }
    changePresence(
      of: connection.user, in: connection.presentUntil == nil ? connection.conversations.sorted() : []
    ) {
      $0.connections[id]?.presentUntil = until
    }
  }

  func sortedConversations(of connections: [ConnectionID]) -> [GroupID] {
    Set(connections.flatMap { live.connections[$0]?.conversations ?? [] }).sorted()
  }

  private mutating func setSharing(_ user: UserID, _ shares: Bool) {
    let connections = sorted(live.connectionsOfUser[user])
    if !shares {
      for group in live.typing.keys.sorted() {
        for (device, typing) in live.typing[group] ?? [:] where typing.user == user {
          setTyping(typing.connection, user, device, group, nil)
        }
      }
    }
    changePresence(of: user, in: sortedConversations(of: connections)) { live in
      for connection in connections { live.connections[connection]?.sharesPresence = shares }
    }
  }

  private mutating func setTyping(
    _ connection: ConnectionID, _ user: UserID, _ device: DeviceID, _ group: GroupID, _ until: Instant?
  ) {
    let known = live.typing[group]?[device]
    if let until {
      live.typing[group, default: [:]][device] = .init(connection: connection, user: user, until: until)
      if known == nil { live.timers.insert(.typing(group, device), at: until) }
      // Told again each time: who listens lets it lapse by itself.
      publish(.conversation(group), .typing(user, device, true))
    } else if known != nil {
      live.typing[group]?[device] = nil
      if live.typing[group]?.isEmpty == true { live.typing[group] = nil }
      publish(.conversation(group), .typing(user, device, false))
    }
  }

  // MARK: Timers in memory

  /// Carries out the leases that are over; returns the wakes that are due.
  mutating func runTimers(at now: Instant) -> [WakeSpan] {
    var due: [WakeSpan] = []
    while due.count < limits.sweepCount, let timer = live.timers.take(at: now) {
      switch timer {
      case .presence(let id):
        guard let connection = live.connections[id], let until = connection.presentUntil else { continue }
        if until > now {
          live.timers.insert(timer, at: until)
        } else {
          changePresence(of: connection.user, in: connection.conversations.sorted()) {
            $0.connections[id]?.presentUntil = nil
          }
        }
      case .typing(let group, let device):
        guard let typing = live.typing[group]?[device] else { continue }
        if typing.until > now {
          live.timers.insert(timer, at: typing.until)
        } else {
          setTyping(typing.connection, typing.user, device, group, nil)
        }
      case .wake(let device, let group):
        guard let wake = live.wakes[device]?[group], wake.due <= now else { continue }
        due.append(wake.span)
      }
    }
    return due
  }
}
