import CPalbeUSRSCTP
import PalbeUnits
import Synchronization

/// The one claim on usrsctp, whose state is the whole process's.
///
/// ## Overview
///
///     let library = try SCTPLibrary()
///     let association = try library.makeAssociation(role: .passive, at: now)
///     …
///     if library.nextDeadline <= now { library.handleTimeout(at: now) }
///     while let association = library.pollReady() { … }      // poll its events, then its datagrams
///
/// ## Function
///
/// At most one exists at a time, and it and its associations stay on one thread (the compiler sees to that:
/// neither is `Sendable`). Other threads send that thread `SCTPCommand`s and get `SCTPReport`s, see
/// `SCTPHub`.
///
/// ## Implementation
///
/// usrsctp runs without threads of its own. Its timers take their time from `handleTimeout`; for round trip
/// times, lifetimes of messages and of cookies it reads the system's clock itself. It draws its own
/// randomness.
public final class SCTPLibrary {
  /// How often usrsctp looks at its timers.
  static let tick = TimeDelta.milliseconds(10)
  /// Bytes that hold every notification of usrsctp's.
  private static let notificationSize = 4_096
  private static let isClaimed = Atomic(false)

  /// Given back when the library goes. Made after the exchange: a type of which everything has a value is
  /// deinitialized also when its initializer throws.
  private struct Claim: ~Copyable {
    deinit { SCTPLibrary.isClaimed.store(false, ordering: .releasing) }
  }

  private let claim: Claim

  /// Where messages and notifications are read to: the largest message of any association, and a byte.
  var scratch: [UInt8] = []
  private var lastTick: Instant?
  private var closing: [ObjectIdentifier: Closing] = [:]

  private var ready: [Ready] = []
  private var readyHead = 0

  private struct Ready {
    weak var association: SCTPAssociation?
  }

  private struct Closing {
    weak var association: SCTPAssociation?
    var deadline: Instant
  }

  /// Throws `libraryInUse` while another one is alive, here or on another thread.
  public init() throws(SCTPError) {
    guard Self.isClaimed.compareExchange(expected: false, desired: true, ordering: .acquiring).exchanged
    else { throw .libraryInUse }
    claim = Claim()
    SCTPSlots.shared.start()
  }

  /// Associations that are alive.
  public var associationCount: Int { SCTPSlots.shared.count }

  /// An association that begins at once. It keeps the library alive.
  public func makeAssociation(
    role: SCTPRole, configuration: SCTPConfiguration = SCTPConfiguration(), at now: Instant
  ) throws(SCTPError) -> SCTPAssociation {
    advance(to: now)
    let scratchSize = max(configuration.maximumMessageSize + 1, Self.notificationSize)
    if scratch.count < scratchSize { scratch = [UInt8](repeating: 0, count: scratchSize) }
    return try SCTPAssociation(library: self, role: role, configuration: configuration)
  }

  /// When to call `handleTimeout`; nil without associations. Every 10 ms while there are any.
  public var nextDeadline: Instant? {
    guard SCTPSlots.shared.count > 0 else { return nil }
    return (lastTick ?? .zero) + Self.tick
  }

  /// Runs the timers of all associations.
  public func handleTimeout(at now: Instant) {
    advance(to: now)
    for (id, entry) in closing where entry.deadline <= now {
      closing[id] = nil
      entry.association?.giveUpClosing()
    }
  }

  /// The next association that may have events or datagrams to poll. Each is named once until more happens.
  public func pollReady() -> SCTPAssociation? {
    while readyHead < ready.count {
      let association = ready[readyHead].association
      readyHead += 1
      if readyHead == ready.count {
        ready.removeAll(keepingCapacity: true)
        readyHead = 0
      }
      if let association {
        association.isReady = false
        return association
      }
    }
    return nil
  }

  /// Puts `association` into the line of `pollReady`. The caller sees to it that it is there once.
  func addReady(_ association: SCTPAssociation) {
    // Nobody need ever call `pollReady`.
    if ready.count > 64 + 4 * SCTPSlots.shared.count {
      ready.removeSubrange(..<readyHead)
      readyHead = 0
      ready.removeAll { $0.association == nil }
    }
    ready.append(Ready(association: association))
  }

  /// Tells usrsctp how much time has passed.
  func advance(to now: Instant) {
    guard let last = lastTick else {
      lastTick = now
      return
    }
    let milliseconds = (now - last).wholeMilliseconds
    guard milliseconds > 0 else { return }
    lastTick = last + .milliseconds(Int(milliseconds))
    usrsctp_handle_timers(UInt32(min(milliseconds, 60_000)))
  }

  /// Gives a closing association until `deadline`.
  func awaitClose(of association: SCTPAssociation, until deadline: Instant) {
    closing[ObjectIdentifier(association)] = Closing(association: association, deadline: deadline)
  }
}
