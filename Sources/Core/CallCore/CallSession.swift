public import PalbeDTLS
public import PalbeFrameEncryption
public import PalbeUnits

/// Why a session could not be made.
public enum CallSetupError: Error, Equatable, Sendable {
  /// The room or the identity is not usable, or the call's keys were used before.
  case keys(FrameKeyError)
  /// There is no local address to send from.
  case noLocalAddress
}

/// The client's side of one call, without sockets, clocks or codecs.
public struct CallSession: ~Copyable {
  /// The serialized `WrappedJoinRequest`; the shell base64url-encodes it into `/rtc/v1?join_request=`.
  public let joinRequest: [UInt8]

  public init(
    configuration: CallConfiguration, identity: DTLSIdentity, localAddresses: [SocketAddress],
    keys: CallKeyLedger, random: RandomSource, now: Instant, unixNanoseconds: Int64
  ) throws(CallSetupError) {
    guard !localAddresses.isEmpty else { throw .noLocalAddress }
    joinRequest = []
  }

  /// One binary WebSocket message of the server.
  public mutating func handleSignal(_ message: Span<UInt8>, at now: Instant) {}

  /// The WebSocket is gone.
  public mutating func signalingClosed(at now: Instant) {}

  /// The next binary WebSocket message for the server; drain after every call that takes a time.
  public mutating func pollSignal() -> [UInt8]? { nil }

  /// One datagram of `count` bytes, opened in place.
  public mutating func receive(
    _ datagram: inout MutableSpan<UInt8>, count: Int, from: SocketAddress, at now: Instant
  ) {}

  /// The next datagram to send, written to `buffer` (1,500 bytes or more); drain after every call that takes a time.
  public mutating func pollTransmit(into buffer: inout MutableSpan<UInt8>, at now: Instant) -> Transmit? { nil }

  /// What happened, in order.
  public mutating func pollEvent() -> CallEvent? { nil }

  /// When `handleTimeout` is due.
  public var nextDeadline: Instant? { nil }

  /// Does what is due.
  public mutating func handleTimeout(at now: Instant) {}

  /// Makes a call key readable, and sends under it as `sending` says.
  public mutating func installKey(_ key: Span<UInt8>, sending: SendSwitch, at now: Instant)
    throws(FrameKeyError)
  {}

  /// Everybody has the newest key: send under it.
  public mutating func confirmSendKey(at now: Instant) {}

  /// Seals, packetizes and queues one encoded frame.
  public mutating func send(
    _ frame: Span<UInt8>, on track: LocalTrack, timestamp: RTPTimestamp, at now: Instant
  ) throws(SendError) { throw .notConnected }

  /// The next decrypted video frame, in decode order per track.
  public mutating func pollVideoFrame(at now: Instant) -> ReceivedVideoFrame? { nil }

  /// What to play for the next 20 ms of a remote audio track; call every 20 ms.
  public mutating func pullAudio(_ track: RemoteTrackID, at now: Instant) -> AudioPull { .idle }

  /// Mutes or unmutes a track of our own; nothing is sent on a muted track.
  public mutating func setMuted(_ track: LocalTrack, _ muted: Bool, at now: Instant) {}

  /// Ends the session: drain signals and datagrams once more, then drop it.
  public mutating func leave(at now: Instant) {}

  /// A snapshot of the counters.
  public var statistics: CallStatistics { CallStatistics() }
}
