import PalbeUnits

/// A datagram as its receiver sees it.
public struct Datagram: Equatable, Sendable {
  /// When it arrived.
  public var arrival: Instant
  /// Where it seems to come from; a NAT's address when the sender is behind one.
  public var source: SocketAddress
  /// The receiver's own address.
  public var destination: SocketAddress
  /// The payload.
  public var bytes: [UInt8]
}

/// A binary heap of datagrams under way, earliest arrival first; equal ones in the order they were sent.
struct ArrivalQueue: Sendable {
  private struct Entry: Sendable {
    var datagram: Datagram
    var serial: UInt64

    func precedes(_ other: Entry) -> Bool {
      datagram.arrival == other.datagram.arrival
        ? serial < other.serial : datagram.arrival < other.datagram.arrival
    }
  }

  private var entries: [Entry] = []
  private var serial: UInt64 = 0

  var count: Int { entries.count }
  var first: Datagram? { entries.first?.datagram }

  mutating func insert(_ datagram: Datagram) {
    entries.append(Entry(datagram: datagram, serial: serial))
    serial += 1
    var child = entries.count - 1
    while child > 0, entries[child].precedes(entries[(child - 1) / 2]) {
      entries.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func removeFirst() -> Datagram? {
    guard let first = entries.first else { return nil }
    let last = entries.removeLast()
    guard !entries.isEmpty else { return first.datagram }
    entries[0] = last
    var parent = 0
    while true {
      let left = 2 * parent + 1
      guard left < entries.count else { break }
      let right = left + 1
      let child = right < entries.count && entries[right].precedes(entries[left]) ? right : left
      guard entries[child].precedes(entries[parent]) else { break }
      entries.swapAt(child, parent)
      parent = child
    }
    return first.datagram
  }
}
