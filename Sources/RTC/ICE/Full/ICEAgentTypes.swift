import PalbeUnits

/// Which agent nominates (RFC 8445 §6.1.1).
public enum ICERole: Sendable, BitwiseCopyable {
  /// It nominates; the offerer, and always the peer of a lite agent.
  case controlling
  /// It follows.
  case controlled
}

/// Where an agent stands.
public enum ICEState: Sendable, BitwiseCopyable {
  /// Nothing to check yet: no remote credentials or no candidates.
  case new
  /// Checks are under way and none was answered.
  case checking
  /// A pair works: media may flow on `selectedPair`.
  case connected
  /// The pair in use is nominated.
  case completed
  /// The pair in use has not answered for `disconnectAfter`; it may come back, a restart may help.
  case disconnected
  /// No pair works, or consent ran out: send nothing. A restart begins again.
  case failed
}

/// The pair that media uses.
public struct ICESelectedPair: Hashable, Sendable, BitwiseCopyable {
  /// The index of the local socket.
  public var base: Int
  /// Our address as the peer sees it.
  public var local: SocketAddress
  /// Where to send to.
  public var remote: SocketAddress

  /// From its parts.
  public init(base: Int, local: SocketAddress, remote: SocketAddress) {
    self.base = base
    self.local = local
    self.remote = remote
  }

  var path: ICEPath { ICEPath(base: base, remote: remote) }
}

/// A datagram that an agent wants sent.
public struct ICETransmit: Hashable, Sendable {
  /// The index of the local socket.
  public var base: Int
  /// Where to.
  public var remote: SocketAddress
  /// A STUN message.
  public var bytes: [UInt8]
}

/// What happened in an agent.
public enum ICEEvent: Equatable, Sendable {
  /// It moved to this state.
  case stateChanged(ICEState)
  /// Media goes here from now on; nil: nowhere.
  case selectedPairChanged(ICESelectedPair?)
  /// A role conflict was settled and our role is now this.
  case roleChanged(ICERole)
}

/// The numbers of an agent; what is not set is what we use.
public struct ICEConfiguration: Sendable {
  /// Ta: between the first transmissions of two checks (RFC 8445 §14.2).
  public var pacing = TimeDelta.milliseconds(50)
  /// The first retransmission of a check, doubled up to `longestRetransmit`. RFC 8445 §14.3 has 500 ms as the least;
  /// we take 250 because one lost check would else cost half a second of a call's set-up. Browsers are faster.
  public var firstRetransmit = TimeDelta.milliseconds(250)
  /// The longest time between two transmissions of a check.
  public var longestRetransmit = TimeDelta.seconds(1)
  /// Transmissions of a check before it has failed, after 10.75 s with these numbers. RFC 8489 §6.2.1 has seven in
  /// 39.5 s; with a second at most between them twelve still get through when three of ten datagrams are lost.
  public var transmissions = 12
  /// How long a working pair waits for a better one before it is nominated.
  public var nominationWait = TimeDelta.milliseconds(200)
  /// How long UDP alone is tried before connections are opened for pairs over TCP, where there are pairs over UDP.
  public var streamDelay = TimeDelta.milliseconds(500)
  /// How long a working pair over TCP waits for one over UDP: that many lost checks should not make it the call's.
  public var streamNominationWait = TimeDelta.milliseconds(1_500)
  /// How long a check over TCP, which is sent once, waits for its answer.
  public var streamCheckTimeout = TimeDelta.milliseconds(10_750)
  /// Least time between two attempts to open the selected pair's connection again.
  public var streamRetry = TimeDelta.seconds(1)
  /// Mean time between consent checks, each 20 % more or less (RFC 7675 §5.1).
  public var consentInterval = TimeDelta.seconds(5)
  /// Silence after which the state is `disconnected`: one lost consent check never is, two are.
  public var disconnectAfter = TimeDelta.milliseconds(12_500)
  /// Silence after which consent is gone (RFC 7675 §5.1).
  public var consentTimeout = TimeDelta.seconds(30)
  /// Time for a first pair to work, since the remote credentials came; trickled candidates may come late.
  public var checkTimeout = TimeDelta.seconds(30)

  /// Our numbers.
  public init() {}
}
