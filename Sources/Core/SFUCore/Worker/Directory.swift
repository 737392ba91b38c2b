import PalbeDataChannels
import PalbeICE
import PalbeUnits

/// Who is on this worker, by everything a message or a packet can name them with.
final class Directory {
  /// A participant's transport.
  struct Endpoint {
    let participant: Participant
    let transport: PeerTransport
  }

  private(set) var rooms: [String: Room] = [:]
  /// Rooms without anybody, which are dropped after their time.
  private var waitingRooms: [Room] = []
  /// In the order of their joining: what is done for all is done in one order, so that a run replays from its seed.
  private(set) var participants: [Participant] = []
  private var byConnection: [ConnectionID: Participant] = [:]
  private var byFragment: [String: Endpoint] = [:]
  private var byAddress: [SocketAddress: Endpoint] = [:]
  private var byPeer: [SCTPPeer: Endpoint] = [:]
  private var byCheck: [STUNTransactionID: Endpoint] = [:]
  /// Participants whose timers are due, kept to spare an allocation.
  private var due: [Participant] = []

  func participant(on connection: ConnectionID) -> Participant? { byConnection[connection] }
  func endpoint(fragment: String) -> Endpoint? { byFragment[fragment] }
  func endpoint(at address: SocketAddress) -> Endpoint? { byAddress[address] }
  func endpoint(of peer: SCTPPeer) -> Endpoint? { byPeer[peer] }
  func endpoint(check id: STUNTransactionID) -> Endpoint? { byCheck[id] }

  func insert(_ link: DataLink, _ endpoint: Endpoint) { byPeer[link.peer] = endpoint }

  func remove(_ link: DataLink) { byPeer[link.peer] = nil }

  func insert(_ room: Room) { rooms[room.name] = room }

  func remove(_ room: Room) {
    rooms[room.name] = nil
    waitingRooms.removeAll { $0 === room }
  }

  /// Nobody is in the room: it is dropped after its time, unless somebody comes.
  func wait(_ room: Room, afterDeparture: Bool, from now: Instant) {
    room.wait(afterDeparture: afterDeparture, from: now)
    if !waitingRooms.contains(where: { $0 === room }) { waitingRooms.append(room) }
  }

  /// Calls `body` for every room whose time is over, and lets the others say when theirs is.
  func forEachOver(at now: Instant, _ body: (Room) -> Void) {
    guard !waitingRooms.isEmpty else { return }
    waitingRooms.removeAll { !$0.isDeserted }
    for room in waitingRooms where room.isOver(at: now) { body(room) }
  }

  func insert(_ participant: Participant) {
    participants.append(participant)
    if let connection = participant.connection { byConnection[connection] = participant }
    for transport in participant.transports { insertFragment(of: transport, participant) }
  }

  /// The participant's signaling is gone.
  func detach(_ participant: Participant, until deadline: Instant) {
    if let connection = participant.connection { byConnection[connection] = nil }
    participant.detach(until: deadline)
  }

  /// The participant's signaling goes on over another connection.
  func attach(_ participant: Participant, to connection: ConnectionID, at now: Instant) {
    if let old = participant.connection { byConnection[old] = nil }
    participant.attach(connection, at: now)
    byConnection[connection] = participant
  }

  /// After a restart of ICE the old fragment still leads here.
  func insertFragment(of transport: PeerTransport, _ participant: Participant) {
    let fragment = transport.ice.local.usernameFragment
    byFragment[fragment] = Endpoint(participant: participant, transport: transport)
    transport.fragments.append(fragment)
    // The agent answers under the present fragment and the one before it.
    if transport.fragments.count > 2 { byFragment[transport.fragments.removeFirst()] = nil }
  }

  /// A check of ours went out: its answer leads here.
  func insert(check id: STUNTransactionID, _ endpoint: Endpoint) {
    let transport = endpoint.transport
    guard byCheck.updateValue(endpoint, forKey: id) == nil else { return }
    transport.checks.append(id)
    // One under way for each of an agent's addresses, twice over.
    if transport.checks.count > 16 { byCheck[transport.checks.removeFirst()] = nil }
  }

  /// An authenticated check came from `address`: it belongs to that transport, where nobody had it before. Who has proven to be
  /// there takes it over.
  func claim(_ address: SocketAddress, for endpoint: Endpoint, at now: Instant) {
    let transport = endpoint.transport
    if let owner = byAddress[address]?.transport {
      guard owner !== transport, transport.ice.isProven(address, at: now) else { return }
      owner.addresses.removeAll { $0 == address }
    }
    byAddress[address] = endpoint
    transport.addresses.append(address)
    transport.addresses.removeAll { known in
      guard known != address, !transport.ice.isHeard(known, at: now) else { return false }
      byAddress[known] = nil
      return true
    }
  }

  /// The TCP connection from `address` has ended.
  func release(_ address: SocketAddress, at now: Instant) {
    guard let endpoint = byAddress.removeValue(forKey: address) else { return }
    endpoint.transport.addresses.removeAll { $0 == address }
    endpoint.transport.forget(address, at: now)
  }

  func remove(_ participant: Participant) {
    participants.removeAll { $0 === participant }
    if let connection = participant.connection { byConnection[connection] = nil }
    for transport in participant.transports {
      for fragment in transport.fragments { byFragment[fragment] = nil }
      for address in transport.addresses { byAddress[address] = nil }
      for id in transport.checks { byCheck[id] = nil }
      if let link = transport.data { remove(link) }
      transport.fragments = []
      transport.addresses = []
      transport.checks = []
    }
  }

  /// Calls `body` for every participant with a timer that is due, and lets the others say when theirs is.
  func forEachDue(at now: Instant, _ body: (Participant) -> Void) {
    for participant in participants {
      if participant.deadline <= now {
        due.append(participant)
      } else {
        participant.context.wake(at: participant.deadline)
      }
    }
    for participant in due where !participant.isClosed { body(participant) }
    due.removeAll(keepingCapacity: true)
  }
}
