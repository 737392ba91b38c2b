import PalbeUnits

/// What lives only in memory: connections and what they listen to, leases, wakes that are due. After a restart the
/// connections come again, and the wakes are read from the store.
struct LiveState {
  struct Connection {
    let user: UserID
    let device: DeviceID
    var sharesPresence: Bool
    /// Until when it counts as present; nil: it does not.
    var presentUntil: Instant?
    var conversations: Set<GroupID> = []
  }

  struct Typing {
    let connection: ConnectionID
    let user: UserID
    var until: Instant
  }

  struct Wake {
    var span: WakeSpan
    let due: Instant
  }

  /// What a deadline is about.
  enum Timer {
    case presence(ConnectionID)
    case typing(GroupID, DeviceID)
    case wake(DeviceID, GroupID)
  }

  var connections: [ConnectionID: Connection] = [:]
  /// Who consumes a device's queue.
  var consumers: [DeviceID: ConnectionID] = [:]
  /// Devices whose queue the shell watches without a connection.
  var watched: Set<DeviceID> = []
  /// Who listens to a conversation.
  var listeners: [GroupID: Set<ConnectionID>] = [:]
  var connectionsOfUser: [UserID: Set<ConnectionID>] = [:]
  var typing: [GroupID: [DeviceID: Typing]] = [:]
  var wakes: [DeviceID: [GroupID: Wake]] = [:]
  var timers = DeadlineQueue<Timer>()
  var rates = RequestRates<DeviceID>()
  var claims = RequestRates<Claim>()

  /// In the order of their numbers, so that a run replays.
  func subscribers(of topic: Topic) -> [ConnectionID] {
    switch topic {
    case .device(let device): consumers[device].map { [$0] } ?? []
    case .conversation(let group): (listeners[group] ?? []).sorted { $0.rawValue < $1.rawValue }
    }
  }

  func hasSubscribers(_ topic: Topic) -> Bool {
    switch topic {
    case .device(let device): consumers[device] != nil || watched.contains(device)
    case .conversation(let group): listeners[group] != nil
    }
  }

  /// Users who listen to a conversation, are present and let it be seen.
  func online(in group: GroupID) -> Set<UserID> {
    var users: Set<UserID> = []
    for id in listeners[group] ?? [] {
      guard let connection = connections[id], connection.presentUntil != nil, connection.sharesPresence else {
        continue
      }
      users.insert(connection.user)
    }
    return users
  }

  func isOnline(_ user: UserID, in group: GroupID) -> Bool {
    (connectionsOfUser[user] ?? []).contains { id in
      guard let connection = connections[id] else { return false }
      return connection.presentUntil != nil && connection.sharesPresence
        && connection.conversations.contains(group)
    }
  }

  /// Makes a connection known; does nothing when it is.
  mutating func open(_ id: ConnectionID, _ caller: Caller, _ device: DeviceID, sharesPresence: Bool) {
    guard connections[id] == nil else { return }
    connections[id] = Connection(user: caller.user, device: device, sharesPresence: sharesPresence)
    connectionsOfUser[caller.user, default: []].insert(id)
  }

  // MARK: Wakes

  /// Remembers that rows wait; those of a device and group are one wake.
  mutating func wake(_ span: WakeSpan, at due: Instant) {
    if var known = wakes[span.device]?[span.group] {
      known.span.last = max(known.span.last, span.last)
      known.span.kind = max(known.span.kind, span.kind)
      wakes[span.device]?[span.group] = known
    } else {
      wakes[span.device, default: [:]][span.group] = Wake(span: span, due: due)
      timers.insert(.wake(span.device, span.group), at: due)
    }
  }

  mutating func removeWake(_ device: DeviceID, _ group: GroupID) {
    wakes[device]?[group] = nil
    if wakes[device]?.isEmpty == true { wakes[device] = nil }
  }

  /// Forgets wakes whose rows are all acknowledged. Of some of them only the store knows.
  mutating func acknowledged(_ rows: Acknowledgement, of device: DeviceID) {
    guard let waiting = wakes[device] else { return }
    for (group, wake) in waiting {
      let isDone =
        switch rows {
        case .upTo(let id): wake.span.last <= id
        case .listed(let ids): wake.span.first == wake.span.last && ids.contains(wake.span.first)
        }
      if isDone { removeWake(device, group) }
    }
  }
}

/// Why rows wake.
struct WakeReason: Equatable {
  let group: GroupID
  let kind: WakeKind
}

/// What a request does to `LiveState` once it is durable.
enum Effect {
  case queued([DeviceID], QueueID, WakeReason?)
  case acknowledged(DeviceID, Acknowledgement)
  case publish(Topic, RealtimeEvent)
  case subscribedDevice(ConnectionID, Caller, sharesPresence: Bool)
  case subscribedConversation(ConnectionID, Caller, GroupID, sharesPresence: Bool)
  case unsubscribed(ConnectionID, Topic)
  case heartbeat(ConnectionID, Caller, sharesPresence: Bool)
  case typing(ConnectionID, Caller, GroupID, Bool)
  case sharesPresence(UserID, Bool)
  case userLeft(GroupID, UserID)
  case deviceRevoked(DeviceID)
  case conversationReset(GroupID)
}
