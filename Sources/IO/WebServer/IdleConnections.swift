import PalbeUnits

/// Connections that hold a place without a request, in the order in which they came to that.
struct IdleConnections {
  private struct Entry {
    var identity: OpaquePointer
    var ticket: UInt64
    var since: Instant
  }

  /// Where an entry is looked for; one that has left is passed over.
  private var entries: [Entry] = []
  private var start = 0
  private var present: Set<UInt64> = []
  private var ticketCount: UInt64 = 0

  var count: Int { present.count }

  /// The connection's ticket, to leave with.
  mutating func enter(_ identity: OpaquePointer, at now: Instant) -> UInt64 {
    ticketCount += 1
    present.insert(ticketCount)
    if entries.count > 2 * present.count + 64 {
      entries = entries[start...].filter { present.contains($0.ticket) }
      start = 0
    }
    entries.append(Entry(identity: identity, ticket: ticketCount, since: now))
    return ticketCount
  }

  mutating func leave(_ ticket: UInt64) { present.remove(ticket) }

  /// Who has been there longest.
  mutating func oldest() -> (identity: OpaquePointer, since: Instant)? {
    while start < entries.count, !present.contains(entries[start].ticket) { start += 1 }
    guard start < entries.count else { return nil }
    return (entries[start].identity, entries[start].since)
  }
}
