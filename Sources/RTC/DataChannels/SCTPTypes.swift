import PalbeUnits

/// Which side begins (RFC 8831 §6.2 leaves it to both; see docs/decisions/0009-data-channels.md).
public enum SCTPRole: Sendable, BitwiseCopyable {
  /// The DTLS client: sends the INIT and never answers one; its in-band channels have even numbers (RFC 8832
  /// §6).
  case active
  /// The DTLS server: waits for the INIT; its in-band channels have odd numbers.
  case passive
}

/// Limits of one association. What is out of range is moved into it.
public struct SCTPConfiguration: Equatable, Sendable {
  /// Bytes of the largest message that is sent or handed out, 1 to 1,048,576; `a=max-message-size` (RFC 8841
  /// §6).
  public var maximumMessageSize: Int
  /// Bytes that may wait for the peer's acknowledgement, at least `maximumMessageSize`.
  public var sendBufferSize: Int
  /// Streams in each direction, 4 to 1,024: numbers of channels are below it. Each costs about 200 bytes.
  public var streamCount: Int
  /// Bytes of the largest datagram, 512 to 1,400; what `DTLSEndpoint.send` takes.
  public var datagramSize: Int
  /// SCTP port of both sides, `a=sctp-port` (RFC 8841 §5).
  public var port: UInt16
  /// When what was sent at `bufferedAmountLow` is told: bytes that wait.
  public var lowThreshold: Int
  /// Bytes of reliable messages that may wait behind a full send buffer; 0 refuses them at once.
  public var backlogSize = 0
  /// While more bytes than this wait, messages of other channels are refused, so that they never take the room of
  /// reliable ones.
  public var unreliableLimit = Int.max

  /// What WebRTC endpoints use.
  public init(
    maximumMessageSize: Int = 64_000, sendBufferSize: Int = 1 << 20, streamCount: Int = 128,
    datagramSize: Int = 1_136, port: UInt16 = 5_000, lowThreshold: Int = 65_536
  ) {
    self.maximumMessageSize = min(max(maximumMessageSize, 1), 1 << 20)
    self.sendBufferSize = min(max(sendBufferSize, self.maximumMessageSize), 1 << 24)
    self.streamCount = min(max(streamCount, 4), 1_024)
    self.datagramSize = min(max(datagramSize, 512), 1_400) & ~3
    self.port = port
    self.lowThreshold = max(lowThreshold, 0)
  }

  /// The window that is offered. From half of it on, a message is handed out in parts, which we never allow.
  var receiveBufferSize: Int { max(1 << 18, 2 * maximumMessageSize + (1 << 16)) }
}

/// How long a message is sent again (RFC 8832 §5.1).
public enum ChannelReliability: Hashable, Sendable {
  /// Until it is acknowledged.
  case reliable
  /// At most so many times; 0: sent once.
  case retransmits(UInt32)
  /// For so many milliseconds. On usrsctp's own clock: see the decision.
  case lifetime(milliseconds: UInt32)
}

/// A data channel.
public struct DataChannel: Hashable, Sendable {
  /// The stream's number in both directions.
  public var id: UInt16
  /// At most 1,024 bytes of UTF-8.
  public var label: String
  /// The subprotocol; at most 1,024 bytes of UTF-8.
  public var subprotocol: String
  /// Messages arrive in the order they were sent.
  public var isOrdered: Bool
  /// How long a message is sent again.
  public var reliability: ChannelReliability
  /// Carried to the peer, otherwise unused (RFC 8831 §6.4).
  public var priority: UInt16

  /// A channel; `id` is chosen by `openChannel`.
  public init(
    id: UInt16 = 0, label: String, subprotocol: String = "", isOrdered: Bool = true,
    reliability: ChannelReliability = .reliable, priority: UInt16 = 256
  ) {
    self.id = id
    self.label = label
    self.subprotocol = subprotocol
    self.isOrdered = isOrdered
    self.reliability = reliability
    self.priority = priority
  }
}

/// What a message holds (RFC 8831 §8).
public enum MessageKind: Sendable, BitwiseCopyable {
  /// UTF-8 that nobody checked.
  case text
  /// Bytes.
  case binary
}

/// Where an association stands.
public enum SCTPState: Equatable, Sendable {
  /// The handshake goes on.
  case connecting
  /// Messages flow.
  case connected
  /// `close` was called, what waits is still sent.
  case closing
  /// Either side closed it.
  case closed
  /// For good, because of this.
  case aborted(SCTPAbortReason)
}

/// Why an association ended before its time.
public enum SCTPAbortReason: Error, Equatable, Sendable {
  /// We did it: `abort`, or the last reference went away.
  case local
  /// The peer's ABORT, with its error cause (RFC 9260 §3.3.10), 0 without one.
  case peer(cause: UInt16)
  /// The peer did not answer.
  case timeout
  /// A message grew beyond what is ever reassembled.
  case messageTooLarge(stream: UInt16)
  /// The peer began a new association in the middle of this one.
  case restarted
}

/// Why a call was refused.
public enum SCTPError: Error, Equatable, Sendable {
  /// Another `SCTPLibrary` is alive in this process.
  case libraryInUse
  /// usrsctp would not make or set up a socket; the system's error number.
  case setUp(code: Int32)
  /// The association has not come up, or has ended.
  case notConnected
  /// No open channel has this number.
  case noSuchChannel(id: UInt16)
  /// The number is taken, or not below the number of streams.
  case channelUnavailable(id: UInt16)
  /// No stream is left for a further channel.
  case noStreamLeft
  /// A label or subprotocol has more than 1,024 bytes.
  case nameTooLong(count: Int)
  /// More bytes than the largest message has.
  case messageTooLong(count: Int, limit: Int)
  /// Too much waits for the peer; try again after `bufferedAmountLow`.
  case bufferFull(buffered: Int)
}

/// What a peer did that made us drop something.
public enum SCTPDropReason: Equatable, Sendable {
  /// A message of more bytes than `maximumMessageSize`.
  case messageTooLong(count: Int)
  /// A message on a stream without a channel.
  case noChannel
  /// A payload protocol identifier that data channels do not have.
  case unknownKind(UInt32)
  /// A DATA_CHANNEL_OPEN or acknowledgement that could not be read, or made no sense there.
  case badControl
}

/// A message of the peer's.
public struct SCTPMessage: Equatable, Sendable {
  /// The channel.
  public var channel: UInt16
  /// Text or binary.
  public var kind: MessageKind
  /// At most `maximumMessageSize`.
  public var bytes: [UInt8]

  /// A message.
  public init(channel: UInt16, kind: MessageKind, bytes: [UInt8]) {
    self.channel = channel
    self.kind = kind
    self.bytes = bytes
  }
}

/// What happened.
public enum SCTPEvent: Equatable, Sendable {
  /// The handshake is done. Numbers of streams that can be sent on and received from.
  case connected(outbound: Int, inbound: Int)
  /// A channel is open at both ends. `byPeer` when the peer opened it in-band.
  case channelOpened(DataChannel, byPeer: Bool)
  /// A message of the peer's.
  case message(SCTPMessage)
  /// Something of the peer's was dropped.
  case dropped(channel: UInt16, SCTPDropReason)
  /// Nothing can be sent on it any more and nothing more comes.
  case channelClosed(id: UInt16)
  /// What waits has fallen to `lowThreshold`, after it was above or a message was refused.
  case bufferedAmountLow(buffered: Int)
  /// Either side closed the association; nothing follows.
  case closed
  /// The association ended; nothing follows.
  case aborted(SCTPAbortReason)
}
