import PalbeUnits

/// Names an association across threads.
public struct SCTPPeer: Hashable, Sendable {
  /// The thread that owns the peer's transport, in numbers of the shell's own.
  public var worker: Int
  /// Unique on that thread.
  public var id: UInt64

  /// A name.
  public init(worker: Int, id: UInt64) {
    self.worker = worker
    self.id = id
  }
}

/// A channel of a peer's, as the destination of a message.
public struct SCTPDestination: Hashable, Sendable {
  /// Whose.
  public var peer: SCTPPeer
  /// The channel's number.
  public var channel: UInt16

  /// A destination.
  public init(peer: SCTPPeer, channel: UInt16) {
    self.peer = peer
    self.channel = channel
  }
}

/// What a worker asks of the thread that owns the `SCTPHub`.
public enum SCTPCommand: Sendable {
  /// DTLS is up: begin. An association of that name is ended first.
  case open(SCTPPeer, role: SCTPRole, SCTPConfiguration, negotiated: [DataChannel])
  /// A decrypted datagram of the peer's.
  case datagram(SCTPPeer, [UInt8])
  /// Open a channel in-band.
  case openChannel(SCTPPeer, DataChannel)
  /// One message to each destination; `from` sent it, and is slowed down where it is for one alone that reads slowly.
  case send([SCTPDestination], MessageKind, [UInt8], from: SCTPPeer? = nil)
  /// Close a channel.
  case closeChannel(SCTPPeer, UInt16)
  /// Send what waits, say goodbye, forget it.
  case close(SCTPPeer)
  /// The peer is gone: say nothing more about it.
  case discard(SCTPPeer)
}

/// What a worker gets back.
public enum SCTPReport: Equatable, Sendable {
  /// To be encrypted and sent to the peer.
  case transmit(SCTPPeer, [UInt8])
  /// Something happened. After `closed` and `aborted` the peer is forgotten.
  case event(SCTPPeer, SCTPEvent)
  /// A message was not taken, or a channel not opened (`channel` is nil then).
  case refused(SCTPPeer, channel: UInt16?, SCTPError)

  /// Who gets it.
  public var peer: SCTPPeer {
    switch self {
    case .transmit(let peer, _), .event(let peer, _), .refused(let peer, _, _): peer
    }
  }
}

/// The associations of all workers, on the one thread that may call usrsctp.
///
/// ## Overview
///
///     worker ──SCTPCommand──▶ mailbox ──▶ hub.handle     hub.pollReport ──▶ that worker's mailbox ──SCTPReport──▶
///
///     var hub = try SCTPHub()
///     loop:
///       for command in mailbox { hub.handle(command, at: now) }
///       if hub.nextDeadline <= now { hub.handleTimeout(at: now) }
///       while let report = hub.pollReport() { mailboxes[report.peer.worker].send(report) }
///
/// ## Function
///
/// Commands and reports are values, so nothing of usrsctp's leaves the thread. A full mailbox loses what it
/// is given: a datagram is repeated by SCTP; the sender of a message sees the refusal and must not wait for
/// more. A peer that floods costs its own worker's mailbox, so let each worker have one. Reports that nobody
/// polls are bounded by the events and datagrams of each association, and refusals by `refusalLimit`.
///
/// Who sends to one peer alone, and more than that takes, is read no further until `bufferedAmountLow`. A peer that does
/// not come so far within `slowTime` refuses the message, as one whose backlog is full. A message to several never
/// slows its sender: one slow reader must not hold up the others.
public final class SCTPHub {
  static let refusalLimit = 4_096
  static let slowTime = TimeDelta.seconds(30)

  /// A peer that takes less than it is sent.
  private struct Slow {
    var channel: UInt16
    var deadline: Instant
    /// Who is not read meanwhile.
    var senders: Set<SCTPPeer>
  }

  private let library: SCTPLibrary
  private var associations: [SCTPPeer: SCTPAssociation] = [:]
  private var slow: [SCTPPeer: Slow] = [:]
  private var refusals: [SCTPReport] = []
  private var refusalHead = 0
  private var current: SCTPAssociation?
  private var buffer = [UInt8](repeating: 0, count: 1_400)

  /// Claims the library; throws `libraryInUse` while another has it.
  public init() throws(SCTPError) { library = try SCTPLibrary() }

  /// Peers that are known.
  public var peerCount: Int { associations.count }

  /// When to call `handleTimeout`.
  public var nextDeadline: Instant? { library.nextDeadline }

  /// Runs the timers.
  public func handleTimeout(at now: Instant) {
    library.handleTimeout(at: now)
    guard !slow.isEmpty else { return }
    for (peer, state) in slow where state.deadline <= now {
      release(peer)
      refuse(peer, channel: state.channel, .bufferFull(buffered: associations[peer]?.bufferedAmount ?? 0))
    }
  }

  /// Does what a worker asks. What concerns a peer that is not known is ignored.
  public func handle(_ command: SCTPCommand, at now: Instant) {
    switch command {
    case .open(let peer, let role, let configuration, let negotiated):
      discard(peer)
      do throws(SCTPError) {
        let association = try library.makeAssociation(role: role, configuration: configuration, at: now)
        association.peer = peer
        associations[peer] = association
        for channel in negotiated { try association.addNegotiatedChannel(channel) }
      } catch {
        refuse(peer, channel: nil, error)
      }
    case .datagram(let peer, let bytes):
      associations[peer]?.handle(bytes.span, at: now)
    case .openChannel(let peer, let channel):
      do throws(SCTPError) {
        _ = try associations[peer]?.openChannel(channel, at: now)
      } catch {
        refuse(peer, channel: nil, error)
      }
    case .send(let destinations, let kind, let bytes, let sender):
      for destination in destinations {
        do throws(SCTPError) {
          try associations[destination.peer]?.send(
            SCTPMessage(channel: destination.channel, kind: kind, bytes: bytes), at: now)
        } catch {
          refuse(destination.peer, channel: destination.channel, error)
        }
      }
      if let sender, destinations.count == 1 { hold(sender, for: destinations[0], at: now) }
    case .closeChannel(let peer, let channel):
      do throws(SCTPError) {
        try associations[peer]?.closeChannel(channel, at: now)
      } catch {
        refuse(peer, channel: channel, error)
      }
    case .close(let peer): associations[peer]?.close(at: now)
    case .discard(let peer): discard(peer)
    }
  }

  /// The next report; each association's events come before its datagrams.
  public func pollReport() -> SCTPReport? {
    if refusalHead < refusals.count {
      refusalHead += 1
      let report = refusals[refusalHead - 1]
      if refusalHead == refusals.count {
        refusals.removeAll(keepingCapacity: true)
        refusalHead = 0
      }
      return report
    }
    while true {
      if let association = current, let peer = association.peer {
        if let event = association.pollEvent() {
          if case .bufferedAmountLow = event { release(peer) }
          return .event(peer, event)
        }
        if let datagram = nextDatagram(of: association) { return .transmit(peer, datagram) }
        if association.hasEnded, associations[peer] === association {
          associations[peer] = nil
          release(peer)
        }
      }
      current = library.pollReady()
      if current == nil { return nil }
    }
  }

  private func nextDatagram(of association: SCTPAssociation) -> [UInt8]? {
    var span = buffer.mutableSpan
    guard let count = association.pollTransmit(into: &span) else { return nil }
    return Array(buffer[..<count])
  }

  /// A worker has ended: its peers are gone.
  public func discardAll(ofWorker worker: Int) {
    for peer in associations.keys where peer.worker == worker { discard(peer) }
  }

  private func discard(_ peer: SCTPPeer) {
    guard let association = associations.removeValue(forKey: peer) else { return }
    association.peer = nil
    association.abort()
    release(peer)
  }

  private func hold(_ sender: SCTPPeer, for destination: SCTPDestination, at now: Instant) {
    guard associations[destination.peer]?.backlog.isEmpty == false, let association = associations[sender],
      sender != destination.peer
    else { return }
    let state = Slow(channel: destination.channel, deadline: now + Self.slowTime, senders: [])
    slow[destination.peer, default: state].senders.insert(sender)
    association.isPaused = true
  }

  /// The peer has caught up, or is gone.
  private func release(_ peer: SCTPPeer) {
    guard let senders = slow.removeValue(forKey: peer)?.senders else { return }
    for sender in senders where !slow.values.contains(where: { $0.senders.contains(sender) }) {
      associations[sender]?.isPaused = false
    }
  }

  private func refuse(_ peer: SCTPPeer, channel: UInt16?, _ error: SCTPError) {
    guard refusals.count - refusalHead < Self.refusalLimit else { return }
    refusals.append(.refused(peer, channel: channel, error))
  }
}
