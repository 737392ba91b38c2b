import CPalbeUSRSCTP
import PalbeUnits

/// The addresses of associations inside usrsctp, and what its callbacks reach by them.
///
/// usrsctp names a peer by a pointer that it never follows but shows to the peer in a cookie. Ours are small
/// numbers: a callback looks its number up here, so one for an association that is gone finds nothing. A
/// number is registered once and used again, oldest first: unregistering one would leave work for a thread
/// that we do not start.
///
/// Only the thread that owns the `SCTPLibrary` comes here, callbacks included: usrsctp calls back from within
/// our calls.
final class SCTPSlots {
  private struct Slot {
    weak var association: SCTPAssociation?
    var outgoing: DatagramQueue?
  }

  /// Associations of one process.
  static let limit = 1 << 16

  private nonisolated(unsafe) static let instance = SCTPSlots()
  /// To be used by the owner of the `SCTPLibrary` alone.
  @safe static var shared: SCTPSlots { unsafe instance }

  /// Associations that are alive.
  private(set) var count = 0
  private var slots: [Slot] = []
  private var free: [Int] = []
  private var freeHead = 0
  private var isStarted = false

  private init() {}

  func start() {
    guard !isStarted else { return }
    isStarted = true
    unsafe palbe_sctp_start { address, bytes, count, _, _ in
      if let bytes = unsafe bytes {
        unsafe SCTPSlots.shared.output(address, UnsafeRawBufferPointer(start: bytes, count: count))
      }
      return 0
    }
  }

  /// A number nobody uses, whose datagrams go to `outgoing`; nil when all are used.
  func take(_ outgoing: DatagramQueue) -> Int? {
    let slot: Int
    if freeHead < free.count {
      slot = free[freeHead]
      freeHead += 1
      if freeHead > 1_024, freeHead * 2 > free.count {
        free.removeFirst(freeHead)
        freeHead = 0
      }
    } else if slots.count < Self.limit {
      slot = slots.count
      slots.append(Slot())
      palbe_sctp_register(Self.address(slot))
    } else {
      return nil
    }
    slots[slot] = Slot(outgoing: outgoing)
    count += 1
    return slot
  }

  func giveBack(_ slot: Int) {
    slots[slot] = Slot()
    free.append(slot)
    count -= 1
  }

  func set(_ association: SCTPAssociation, for slot: Int) { slots[slot].association = association }

  /// Never 0, which means every address.
  static func address(_ slot: Int) -> UInt { UInt(slot) + 1 }

  /// For `usrsctp_set_upcall`: something can be read, or the association has changed.
  static let upcall: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?, Int32) -> Void = {
    _, argument, _ in
    unsafe SCTPSlots.shared.association(at: argument)?.markReady()
  }

  private func association(at address: UnsafeMutableRawPointer?) -> SCTPAssociation? {
    let slot = Int(bitPattern: address) - 1
    return slots.indices.contains(slot) ? slots[slot].association : nil
  }

  private func output(_ address: UnsafeMutableRawPointer?, _ datagram: UnsafeRawBufferPointer) {
    let slot = Int(bitPattern: address) - 1
    guard slots.indices.contains(slot), let outgoing = slots[slot].outgoing else { return }
    unsafe outgoing.append(datagram)
    slots[slot].association?.markReady()
  }
}
