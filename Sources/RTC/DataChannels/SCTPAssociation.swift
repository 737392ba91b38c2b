import CPalbeUSRSCTP
import PalbeUnits
import PalbeWire

/// Data channels with one peer (RFC 8831), datagrams in and datagrams out: SCTP over DTLS (RFC 8261).
///
/// ## Overview
///
///     connecting ──▶ connected ──close──▶ closing ──▶ closed
///          └──────────────┴───────┴─────────────────▶ aborted(reason)
///
///     association.handle(datagram, at: now)                      // what DTLSEndpoint.pollReceived gave
///     while let event = association.pollEvent() { … }
///     while let count = association.pollTransmit(into: &buffer) { dtls.send(buffer[..<count], at: now) }
///
/// ## Function
///
/// Events first, datagrams second: an event may make a datagram. While more than `eventLimit` events or
/// `eventByteLimit` bytes wait to be polled, datagrams of the peer's are dropped, and the peer slows down.
///
/// ## Implementation
///
/// `SCTPGuard` lets a datagram pass, usrsctp takes it, and everything that it then has is taken out at once:
/// a message that usrsctp hands out in parts is larger than any that is allowed, and ends the association.
public final class SCTPAssociation {
  /// Events that may wait.
  static let eventLimit = 4_096
  /// Bytes of messages that may wait.
  static let eventByteLimit = 1 << 20
  /// How long `close` waits for the peer.
  static let closeTime = TimeDelta.seconds(5)

  /// A channel and how far it is.
  struct Entry {
    enum Phase {
      /// DATA_CHANNEL_OPEN was sent and not acknowledged: only ordered messages (RFC 8832 §6).
      case opening
      case open
      /// Nothing is sent; kept until both directions are reset, so that the number is not used again before.
      case closing(outgoingDone: Bool, incomingDone: Bool)
    }
    var channel: DataChannel
    var phase: Phase
  }

  /// Which side it is.
  public let role: SCTPRole
  /// Its limits.
  public let configuration: SCTPConfiguration
  /// Where it stands.
  public internal(set) var state = SCTPState.connecting
  /// Datagrams of the peer's that were not looked at: kept out by the guard, or too many events waited.
  public private(set) var refusedDatagramCount = 0

  let library: SCTPLibrary
  let outgoing = DatagramQueue()
  var socket: SCTPSocket?
  /// usrsctp's number for it, once connected.
  var association: UInt32 = 0
  var entries: [UInt16: Entry] = [:]
  /// Control messages that wait for the handshake or for room, first in first out.
  var control: [(id: UInt16, bytes: [UInt8])] = []
  /// Reliable messages behind a full send buffer, first in first out.
  var backlog: [SCTPMessage] = []
  var backlogBytes = 0
  var streamLimit: Int
  /// Something was refused or is above `lowThreshold`.
  var isAboveThreshold = false
  /// Messages are left in usrsctp, which lets the peer send no more than its window.
  var isPaused = false {
    didSet { if !isPaused { markReady() } }
  }
  /// Stands in the line of `SCTPLibrary.pollReady`.
  var isReady = false
  /// For the hub.
  var peer: SCTPPeer?

  private var gate: SCTPGuard
  private var events: [SCTPEvent] = []
  private var eventHead = 0
  private var eventBytes = 0

  init(library: SCTPLibrary, role: SCTPRole, configuration: SCTPConfiguration) throws(SCTPError) {
    self.library = library
    self.role = role
    self.configuration = configuration
    streamLimit = configuration.streamCount
    gate = SCTPGuard(role: role, configuration: configuration)
    let socket = try SCTPSocket(configuration: configuration, outgoing: outgoing)
    try socket.begin(role: role, port: configuration.port)
    SCTPSlots.shared.set(self, for: socket.slot)
    self.socket = consume socket
    markReady()
  }

  /// Calls `body` with the socket, if there still is one.
  @discardableResult
  func withSocket<Result>(_ body: (borrowing SCTPSocket) -> Result) -> Result? {
    switch socket {
    case .some(let socket): body(socket)
    case nil: nil
    }
  }

  // MARK: In and out

  /// Takes one decrypted datagram of the peer's. Garbage is ignored.
  public func handle(_ datagram: Span<UInt8>, at now: Instant) {
    library.advance(to: now)
    guard socket != nil, events.count - eventHead < Self.eventLimit, eventBytes < Self.eventByteLimit else {
      refusedDatagramCount += 1
      return
    }
    do throws(SCTPGuard.Refusal) {
      try gate.check(datagram)
    } catch {
      refusedDatagramCount += 1
      return
    }
    withSocket { $0.input(datagram) }
    drain()
    progress()
  }

  /// Copies the next datagram to send to the start of `buffer`, which has room for `datagramSize` bytes, and
  /// says how long it is. Also works after the end: goodbyes are sent then.
  @_lifetime(buffer: copy buffer)
  public func pollTransmit(into buffer: inout MutableSpan<UInt8>) -> Int? { outgoing.pop(into: &buffer) }

  /// The next event.
  public func pollEvent() -> SCTPEvent? {
    if eventHead == events.count {
      drain()
      progress()
    }
    guard eventHead < events.count else { return nil }
    let event = events[eventHead]
    eventHead += 1
    if case .message(let message) = event { eventBytes -= message.bytes.count }
    if eventHead == events.count {
      events.removeAll(keepingCapacity: events.count < 256)
      eventHead = 0
    }
    return event
  }

  func emit(_ event: SCTPEvent) {
    if case .message(let message) = event { eventBytes += message.bytes.count }
    events.append(event)
    markReady()
  }

  /// Something may be there to poll.
  func markReady() {
    guard !isReady else { return }
    isReady = true
    library.addReady(self)
  }

  /// Nothing more happens.
  var hasEnded: Bool {
    switch state {
    case .connecting, .connected, .closing: false
    case .closed, .aborted: true
    }
  }

  // MARK: The end

  /// Sends what waits, then says goodbye; `closed` follows, after 5 s at the latest.
  public func close(at now: Instant) {
    library.advance(to: now)
    switch state {
    case .connecting: finish(.closed)
    case .connected:
      state = .closing
      gate.shutDown()
      withSocket { $0.shutDown(association: association) }
      library.awaitClose(of: self, until: now + Self.closeTime)
      drain()
    case .closing, .closed, .aborted: break
    }
  }

  /// Ends it at once with an ABORT, and drops what waits.
  public func abort() { finish(.aborted(.local)) }

  func giveUpClosing() {
    if state == .closing { finish(.closed) }
  }

  /// The last step of every way. The socket's end may send an ABORT.
  func finish(_ end: SCTPState) {
    guard !hasEnded else { return }
    state = end
    switch end {
    case .aborted(let reason): emit(.aborted(reason))
    default: emit(.closed)
    }
    entries.removeAll()
    control.removeAll()
    backlog = []
    backlogBytes = 0
    // What this makes usrsctp send goes to `outgoing`, which the slot names until it is given back.
    socket = nil
  }

  // MARK: What usrsctp has to say

  /// Takes everything that usrsctp holds for us.
  func drain() {
    while socket != nil, !isPaused {
      guard let item = withSocket({ $0.receive(into: &library.scratch) }) ?? nil else { return }
      switch item {
      case .data(let count, let isEnd, let stream, let kind):
        if isEnd {
          received(count: count, stream: stream, kind: kind)
        } else {
          skip(count: count, stream: stream)
        }
      case .change(let number, let change, let error, let outbound, let inbound):
        changed(number, to: change, error: error, outbound: outbound, inbound: inbound)
      case .streamsReset(let count, let flags):
        for index in 0..<count {
          let id = UInt16(library.scratch[2 * index]) << 8 | UInt16(library.scratch[2 * index + 1])
          streamReset(id, flags: flags)
        }
      case .other: break
      }
    }
  }

  /// The rest of a message of which the buffer could not hold all. When there is no rest yet, usrsctp is
  /// handing it out while it still grows.
  private func skip(count: Int, stream: UInt16) {
    var total = count
    while true {
      guard let item = withSocket({ $0.receive(into: &library.scratch) }) ?? nil,
        case .data(let more, let isEnd, stream, _) = item
      else { return finish(.aborted(.messageTooLarge(stream: stream))) }
      total += more
      guard !isEnd else { break }
    }
    emit(.dropped(channel: stream, .messageTooLong(count: total)))
  }

  private func changed(
    _ number: UInt32, to change: UInt16, error: UInt16, outbound: Int, inbound: Int
  ) {
    switch Int32(change) {
    case SCTP_COMM_UP:
      guard state == .connecting else { return finish(.aborted(.restarted)) }
      association = number
      state = .connected
      gate.connected()
      streamLimit = min(outbound, inbound, configuration.streamCount)
      emit(.connected(outbound: outbound, inbound: inbound))
      becameConnected()
    case SCTP_RESTART: finish(.aborted(.restarted))
    case SCTP_COMM_LOST:
      // usrsctp gives no cause when its retransmissions ran out.
      finish(state == .closing ? .closed : .aborted(error == 0 ? .timeout : .peer(cause: error)))
    case SCTP_CANT_STR_ASSOC: finish(.aborted(error == 0 ? .timeout : .peer(cause: error)))
    case SCTP_SHUTDOWN_COMP: finish(.closed)
    default: break
    }
  }
}
