import PalbeUnits

/// The 32 random bytes that MLS knows a group by (RFC 9420 `group_id`).
public struct MLSGroupID: Hashable, Sendable {
  /// The bytes.
  public let bytes: [UInt8]
  /// Any bytes.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }
}

/// A position in a group's log: 1, 2, 3 without a gap.
public typealias LogSequence = Int64
/// An MLS epoch.
public typealias Epoch = UInt64

/// A position in a device's queue: ascending, with gaps. Microseconds since 1970 where the clock allows.
public struct QueueID: Hashable, Comparable, Sendable, BitwiseCopyable {
  /// The number.
  public let rawValue: Int64
  /// A position.
  public init(_ rawValue: Int64) { self.rawValue = rawValue }
  /// Before every position.
  public static let start = QueueID(0)
  public static func < (left: QueueID, right: QueueID) -> Bool { left.rawValue < right.rawValue }
}

/// What a group is.
public enum ChatKind: UInt8, Sendable {
  /// Two users, or one with themselves; one per pair.
  case direct = 1
  /// Any number of users.
  case group = 2
}

/// What a user may do in a group; roles compare.
public enum ChatRole: UInt8, Sendable, Comparable, CaseIterable {
  /// Reads, writes, adds, leaves.
  case member = 1
  /// Also removes members, moderates calls and re-founds the group.
  case admin = 2
  /// Also gives roles and removes anybody.
  case owner = 3
  public static func < (left: ChatRole, right: ChatRole) -> Bool { left.rawValue < right.rawValue }
}

/// Whether a group wakes a user's devices.
public enum NotifyScope: UInt8, Sendable {
  /// Wakes.
  case all = 1
  /// Does not.
  case none = 2
}

/// What a user lets others see.
public struct CommsPrefs: Hashable, Sendable {
  /// Online status and typing.
  public var sharePresence: Bool
  /// How far the user has read.
  public var shareReceipts: Bool
  /// Both are shared unless the user says otherwise (S0-100).
  public init(sharePresence: Bool = true, shareReceipts: Bool = true) {
    self.sharePresence = sharePresence
    self.shareReceipts = shareReceipts
  }
}

/// What a device runs.
public enum DevicePlatform: UInt8, Sendable {
  case ios = 1
  case macos = 2
  case android = 3
  case web = 4
  case linux = 5
}

/// What a push token is for.
public enum PushPlatform: UInt8, Sendable, CaseIterable {
  /// Messages.
  case ios = 1
  /// Calls.
  case iosVoIP = 2
}

/// A token of the push service.
public struct PushToken: Hashable, Sendable {
  /// What it is for.
  public let platform: PushPlatform
  /// Its bytes.
  public let bytes: [UInt8]
  /// A token.
  public init(platform: PushPlatform, bytes: [UInt8]) {
    self.platform = platform
    self.bytes = bytes
  }
}

/// What a row of a group's log carries.
public enum LogKind: UInt8, Sendable {
  /// An application message.
  case application = 1
  /// A proposal for the epoch it was sent in.
  case proposal = 2
  /// The commit that ends the epoch it was sent in.
  case commit = 3
}

/// Whether a blob's bytes are there.
public enum BlobState: UInt8, Sendable {
  /// The upload was not completed.
  case pending = 1
  /// Complete.
  case ready = 2
}

/// What a wake push tells (S0-120).
public enum WakeKind: UInt8, Sendable, Comparable {
  /// A message came.
  case message = 1
  /// The device was added to a group.
  case welcome = 2
  public static func < (left: WakeKind, right: WakeKind) -> Bool { left.rawValue < right.rawValue }
}

/// A connection, numbered by the shell; a number is not used twice.
public struct ConnectionID: Hashable, Sendable, BitwiseCopyable {
  /// The number.
  public let rawValue: UInt64
  /// A connection.
  public init(_ rawValue: UInt64) { self.rawValue = rawValue }
}
