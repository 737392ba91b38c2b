public import PalbeUnits

/// Where an event goes; `Backend.subscribers(of:)` are the connections.
public enum Topic: Hashable, Sendable {
  case device(DeviceID)
  case conversation(GroupID)
}

/// What the shell does after a request was answered or a time has come. It never precedes what it tells of being durable.
public enum BackendEvent: Equatable, Sendable {
  /// To all subscribers of a topic.
  case publish(Topic, RealtimeEvent)
  /// A connection does not hear a topic any more.
  case subscriptionEnded(ConnectionID, Topic, SubscriptionEnd)
  /// To the push service; it carries no content.
  case wakePush(WakePush)
  /// Blobs whose bytes can be deleted.
  case deleteBlobs([BlobID])
  /// Work that time brought could not be done and is tried again.
  case storeFault(StoreFault)
}

/// What subscribers hear.
public enum RealtimeEvent: Equatable, Sendable {
  /// The queue has rows.
  case queueChanged
  /// An encrypted message that is kept nowhere.
  case ephemeral(sender: DeviceID, epoch: Epoch, blob: [UInt8])
  case typing(UserID, DeviceID, Bool)
  case presence(UserID, isOnline: Bool)
  /// A device has fetched and acknowledged up to here.
  case delivered(UserID, DeviceID, LogSequence)
  case read(UserID, LogSequence)
  /// To the user's own devices: the user has read up to here.
  case ownRead(GroupID, LogSequence)
}

/// Why a subscription ended.
public enum SubscriptionEnd: Equatable, Sendable {
  /// A newer connection of the device took over.
  case superseded
  case notAMember
  case deviceRevoked
  /// The group has another MLS id now.
  case groupReset
}

/// A push for one device and group (S0-123).
public struct WakePush: Equatable, Sendable {
  public var device: DeviceID
  public var group: GroupID
  public var kind: WakeKind
  public var tokens: [PushToken]
  /// A push.
  public init(device: DeviceID, group: GroupID, kind: WakeKind, tokens: [PushToken]) {
    self.device = device
    self.group = group
    self.kind = kind
    self.tokens = tokens
  }
}
