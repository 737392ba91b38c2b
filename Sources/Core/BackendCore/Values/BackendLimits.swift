public import PalbeUnits

/// What the server takes, and how long it keeps it.
public struct BackendLimits: Sendable, Hashable {
  /// An application message's or proposal's bytes (2.2).
  public var messageByteCount = 256 << 10
  /// A commit's, a welcome's, a group info's or a tree's bytes: a thousand leaves fit.
  public var handshakeByteCount = 1 << 20
  /// A sealed group name's bytes.
  public var sealedNameByteCount = 4 << 10
  /// A key package's bytes.
  public var keyPackageByteCount = 16 << 10
  /// Key packages that a device keeps here, the last resort aside.
  public var keyPackageCount = 200
  /// An attachment's bytes (2.2).
  public var blobByteCount: Int64 = 2 << 30
  /// Devices in a group (2.2).
  public var devicesPerGroup = 1_000
  /// Devices of a user that are not revoked.
  public var devicesPerUser = 32
  /// Rows of one answer.
  public var pageCount = 100
  /// Bytes of one answer's rows, past which it ends early; a row on its own always comes.
  public var pageByteCount = 4 << 20
  /// Epochs before the newest in which messages are still accepted (4.2).
  public var acceptedPastEpochs: Epoch = 3
  /// How long rows wait to be fetched (2.9i), and how long the log is kept.
  public var retention = TimeDelta.days(30)
  /// How long an upload may take to begin and end.
  public var uploadTime = TimeDelta.seconds(900)
  /// How long a complete blob is kept.
  public var blobRetention = TimeDelta.days(30)
  /// How long a repeated request is answered with the first answer.
  public var idempotencyTime = TimeDelta.days(1)
  /// How long a row that wakes may stay without acknowledgement.
  public var wakeDelay = TimeDelta.seconds(2)
  /// A presence lease (4.3).
  public var presenceLease = TimeDelta.seconds(60)
  /// A typing lease (4.3).
  public var typingLease = TimeDelta.seconds(6)
  /// How often what has expired is looked for.
  public var sweepInterval = TimeDelta.seconds(3_600)
  /// Rows of one kind that one sweep removes.
  public var sweepCount = 1_000
  /// Requests of one device in the long run.
  public var requestsPerSecond = 200
  /// Requests of one device at once.
  public var requestBurst = 2_000
  /// Claims of one user's key packages by another that consume them, at once.
  public var claimBurst = 10
  /// After which one more of these claims consumes; those above get the packages for last resort.
  public var claimInterval = TimeDelta.seconds(600)
  /// Connections' subscriptions to conversations.
  public var subscriptionsPerConnection = 2_000

  /// The limits of the requirements.
  public init() {}
}
