import PalbeUnits

/// Requests of connections; what they change is in memory, and they ask the store only who may.
extension Backend {
  /// The connections that hear a topic now.
  public func subscribers(of topic: Topic) -> [ConnectionID] { live.subscribers(of: topic) }

  mutating func subscribe(
    _ connection: ConnectionID, to topic: TopicName, by device: DeviceRow
  ) throws(BackendFailure) -> BackendResponse {
    let caller = try checkOwner(of: connection, device)
    let shares = try prefs(of: device.user).sharePresence
    switch topic {
    case .device(let id):
      guard id == device.id else { throw .forbidden }
      effects.append(.subscribedDevice(connection, caller, sharesPresence: shares))
      return .subscribed(nil, online: [], typing: [])
    case .conversation(let mlsID):
      guard let known = try store.group(mlsID: mlsID) else { throw .chatNotFound }
      let group = try membership(of: device, in: known.id).group.id
      guard live.connections[connection]?.conversations.count ?? 0 < limits.subscriptionsPerConnection else {
        throw .invalidRequest(.tooMany)
      }
      effects.append(.subscribedConversation(connection, caller, group, sharesPresence: shares))
      return .subscribed(
        group, online: live.online(in: group).sorted(), typing: (live.typing[group] ?? [:]).keys.sorted())
    }
  }

  mutating func unsubscribe(
    _ connection: ConnectionID, from topic: TopicName, by device: DeviceRow
  ) throws(BackendFailure) -> BackendResponse {
    _ = try checkOwner(of: connection, device)
    switch topic {
    case .device(let id): effects.append(.unsubscribed(connection, .device(id)))
    case .conversation(let mlsID):
      guard let group = try store.group(mlsID: mlsID) else { return .done }
      effects.append(.unsubscribed(connection, .conversation(group.id)))
    }
    return .done
  }

  mutating func heartbeat(
    _ connection: ConnectionID, by device: DeviceRow
  ) throws(BackendFailure) -> BackendResponse {
    let caller = try checkOwner(of: connection, device)
    effects.append(.heartbeat(connection, caller, sharesPresence: try prefs(of: device.user).sharePresence))
    return .done
  }

  mutating func setTyping(
    _ isOn: Bool, _ connection: ConnectionID, in id: GroupID, by device: DeviceRow
  ) throws(BackendFailure) -> BackendResponse {
    let caller = try checkOwner(of: connection, device)
    _ = try membership(of: device, in: id)
    // Who hides presence hides typing too (S0-101); that it stops is told in any case.
    let shares = try prefs(of: device.user).sharePresence
    if shares || !isOn {
      effects.append(.typing(connection, caller, id, isOn))
    }
    return .done
  }

  /// A connection stays the device's that used it first.
  private func checkOwner(
    of connection: ConnectionID, _ device: DeviceRow
  ) throws(BackendFailure) -> Caller {
    if let known = live.connections[connection], known.device != device.id {
      throw .invalidRequest(.identifier)
    }
    return Caller(user: device.user, device: device.id)
  }
}
