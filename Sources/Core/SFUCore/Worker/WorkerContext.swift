import PalbeCongestion
import PalbeDTLS
import PalbeDataChannels
import PalbeLiveKit
import PalbeProtobuf
import PalbeRTP
import PalbeUnits
import PalbeWire

/// What everything on one worker shares: its settings, its clock, and the ways out.
final class WorkerContext {
  private(set) var configuration: SFUConfiguration
  /// No new rooms.
  var isDraining = false
  var totals = WorkerTotals()
  let identity: DTLSIdentity
  let clock: WallClock
  var random: RandomSource
  /// What the shell has still to be told. It drains this after each input, and one input makes few: none is dropped.
  var events = BoundedQueue<SFUEvent>(limit: .max)
  /// What is dropped here, as a network would drop it, is repeated or outdated soon.
  var datagrams = DatagramQueue(limit: 4_096)
  /// Where RTCP compounds are written before they are protected, and answers to checks. It and the next three are kept to
  /// spare allocations, and hold nothing between two calls.
  var compound = ByteWriter(capacity: 1_500)
  /// Where checks of ours are written, beside the answer to one.
  var check = ByteWriter(capacity: 128)
  var reportBlocks: [ReportBlock] = []
  var missing: [SequenceNumber] = []
  var arrivals = TransportFeedbackRecorder.Scratch()
  /// A subscriber repeats the request that is dropped here.
  var repairs = BoundedQueue<WaitingRepair>(limit: 4_096)
  /// Operators' calls to participants.
  var calls = RemoteCalls()
  /// Rooms whose counts everyone in them is to be told.
  var changedRooms: [Room] = []
  /// The time of the input in hand.
  var now: Instant
  private var peerCount: UInt64 = 0
  /// No timer is due before this.
  private(set) var nextDeadline = Instant.distantFuture
  /// Links with packets that wait, or that are probed.
  private var pacedLinks: [LinkControl] = []
  /// The next of them to ask in this round.
  private var paceCursor = 0
  /// None of them has anything before this.
  private var nextPaceAt = Instant.distantFuture

  init(configuration: SFUConfiguration, identity: DTLSIdentity, clock: WallClock, random: RandomSource) {
    self.configuration = configuration
    self.identity = identity
    self.clock = clock
    now = clock.origin
    self.random = random
  }

  /// Other settings, under the same candidates and number.
  func reconfigure(_ new: SFUConfiguration) {
    let old = configuration
    configuration = new
    configuration.candidates = old.candidates
    configuration.number = old.number
  }

  /// Timers run on this grid: a round looks at every participant, so it must not be one per participant.
  private static let grid: Int64 = 2_000_000

  /// Makes the worker look at its timers at `instant`, or up to 2 ms later.
  func wake(at instant: Instant) {
    guard instant < nextDeadline else { return }
    let late = instant.nanoseconds % Self.grid
    nextDeadline = late == 0 ? instant : instant + TimeDelta(nanoseconds: Self.grid - late)
  }

  /// False when the participant behind the transport has sent more than its share: the datagram is dropped before anything
  /// is decrypted or allocated, so that it costs the others little.
  @inline(__always)
  func admits(_ kind: PacketKind, over transport: PeerTransport, at now: Instant) -> Bool {
    let cost =
      switch kind {
      case .rtp, .rtcp: 1
      // Data channels, once the handshake is done; before that each may cost a signature.
      case .dtls: transport.isConnected ? 1 : 32
      case .stun: 32
      case .turnChannel, .unknown: 1
      }
    return configuration.participantAllowance.admits(cost, on: &transport.received, at: now)
  }

  /// Begins a round over all timers, in which each says anew when it is due.
  func restartDeadlines(at now: Instant) {
    nextDeadline = .distantFuture
    // What is due is sent behind this round, and says then when it goes on.
    if nextPaceAt > now { wake(at: nextPaceAt) }
  }

  /// Tells what changed about rooms, where it is time.
  func tellChangedRooms(at now: Instant) {
    guard !changedRooms.isEmpty else { return }
    changedRooms.removeAll { $0.tellChange(at: now) }
  }

  /// Has the link asked for packets from its `nextSendAt` on.
  func pace(_ link: LinkControl) {
    guard !link.participant.isClosed else { return }
    if !link.isListed {
      link.isListed = true
      pacedLinks.append(link)
    }
    nextPaceAt = min(nextPaceAt, link.nextSendAt)
    wake(at: nextPaceAt)
  }

  /// The link's participant leaves: nothing more goes over it.
  func forget(_ link: LinkControl) {
    guard link.isListed else { return }
    link.isListed = false
    pacedLinks.removeAll { $0 === link }
    paceCursor = 0
  }

  /// The next packet of a link whose time has come.
  @_lifetime(buffer: copy buffer)
  func pollPaced(
    using scratch: inout MediaPacket, into buffer: inout MutableSpan<UInt8>, at now: Instant
  ) -> Transmit? {
    guard now >= nextPaceAt else { return nil }
    while paceCursor < pacedLinks.count {
      let link = pacedLinks[paceCursor]
      if link.nextSendAt <= now {
        if let destination = link.participant.downTransport.remote {
          if let count = link.poll(using: &scratch, into: &buffer, at: now) {
            return Transmit(destination: destination, count: count)
          }
        } else {
          link.discard(at: now)
        }
      }
      if link.isIdle {
        link.isListed = false
        pacedLinks.swapAt(paceCursor, pacedLinks.count - 1)
        pacedLinks.removeLast()
      } else {
        paceCursor += 1
      }
    }
    paceCursor = 0
    nextPaceAt = .distantFuture
    for link in pacedLinks { nextPaceAt = min(nextPaceAt, link.nextSendAt) }
    if nextPaceAt < .distantFuture { wake(at: nextPaceAt) }
    return nil
  }

  /// Queues what lies in `compound`.
  func sendCompound(to destination: SocketAddress) {
    let bytes = compound.bytes
    datagrams.append(bytes.span, to: destination)
  }

  /// Queues what lies in `check`.
  func sendCheck(to destination: SocketAddress) {
    let bytes = check.bytes
    datagrams.append(bytes.span, to: destination)
  }

  func send(_ message: LiveKit.SignalResponse.Message, to connection: ConnectionID) {
    events.append(.send(connection, LiveKit.SignalResponse(message).serialized()))
  }

  /// Of something that changes now.
  func version(after last: LiveKit.TimedVersion?) -> LiveKit.TimedVersion {
    .with {
      $0.unixMicro = max(clock.unixMilliseconds(at: now) * 1_000, last?.unixMicro ?? 0)
      $0.ticks = $0.unixMicro == last?.unixMicro ? (last?.ticks ?? 0) &+ 1 : 0
    }
  }

  /// A name for another association.
  func makePeer() -> SCTPPeer {
    peerCount += 1
    return SCTPPeer(worker: configuration.number, id: peerCount)
  }

  /// Asks something of the thread that owns SCTP.
  func ask(_ command: SCTPCommand) { events.append(.sctp(command)) }

  func notify(
    _ event: RoomNotice.Event, _ room: Room, _ participant: Participant? = nil,
    _ track: LiveKit.TrackInfo? = nil, endReason: LiveKit.RoomEndReason = .unknown
  ) {
    events.append(
      .notice(
        RoomNotice(
          event: event, room: room.info, participant: participant?.info, track: track, endReason: endReason,
          createdAt: clock.unixMilliseconds(at: now) / 1_000)))
  }

  func log(_ level: SFULogRecord.Level, _ message: String, _ fields: [(name: String, value: String)] = []) {
    events.append(.log(SFULogRecord(level, message, fields)))
  }
}
