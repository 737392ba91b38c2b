import PalbeUnits
import Synchronization

/// What a process must remember across its calls: the contexts it drew, and the rooms each key served.
///
/// A call key ring lives as long as one connection; this lives as long as the process, one for all its calls, so that
/// no context is drawn twice and no room or call id serves two calls under one key (hazards H3 and H13).
public final class CallKeyLedger: Sendable {
  /// Contexts and rooms remembered; the oldest is forgotten first.
  static let contextLimit = 65_536
  static let roomLimit = 4_096

  private struct Entry {
    let identity: String
    let key: [UInt8]
    let room: String
    let call: String
    var ended = false
  }

  private struct State {
    var contexts = Set<UInt64>()
    var order = [UInt64]()
    var next = 0
    var entries = [Entry]()
    var sources = Set<UInt32>()
    var sourceOrder = [UInt32]()
    var nextSource = 0
  }

  private let state = Mutex(State())

  /// An empty ledger.
  public init() {}

  /// 40 random bits that no earlier call returned.
  func freshContext(using random: inout RandomSource) -> UInt64 {
    // The generator is moved in and out: a closure may not capture it inout across the lock.
    var source = random
    defer { random = source }
    return state.withLock { state in
      var context: UInt64
      repeat { context = source.next() & 0xff_ffff_ffff } while state.contexts.contains(context)
      if state.order.count < CallKeyLedger.contextLimit {
        state.order.append(context)
      } else {
        state.contexts.remove(state.order[state.next])
        state.order[state.next] = context
        state.next = (state.next + 1) % CallKeyLedger.contextLimit
      }
      state.contexts.insert(context)
      return context
    }
  }

  /// A number to draw LiveKit IVs from that no earlier call returned: `source` itself if it is one.
  func freshSource(preferring source: UInt32?, using random: inout RandomSource) -> UInt32 {
    var generator = random
    defer { random = generator }
    return state.withLock { state in
      var fresh = source ?? UInt32(truncatingIfNeeded: generator.next() >> 32)
      while state.sources.contains(fresh) { fresh = UInt32(truncatingIfNeeded: generator.next() >> 32) }
      if state.sourceOrder.count < CallKeyLedger.contextLimit {
        state.sourceOrder.append(fresh)
      } else {
        state.sources.remove(state.sourceOrder[state.nextSource])
        state.sourceOrder[state.nextSource] = fresh
        state.nextSource = (state.nextSource + 1) % CallKeyLedger.contextLimit
      }
      state.sources.insert(fresh)
      return fresh
    }
  }

  /// Notes that `call` uses `room` under the key named by `tag`.
  ///
  /// The same pair again is a participant who comes back. Throws `roomReused` when the room served another call, the
  /// call another room, or the call has ended.
  func admit(tag: [UInt8], identity: String, room: String, call: String) throws(FrameKeyError) {
    let admitted = state.withLock { state in
      for entry in state.entries where entry.key == tag && entry.identity == identity {
        guard entry.room == room || entry.call == call else { continue }
        return entry.room == room && entry.call == call && !entry.ended
      }
      if state.entries.count == CallKeyLedger.roomLimit { state.entries.removeFirst() }
      state.entries.append(Entry(identity: identity, key: tag, room: room, call: call))
      return true
    }
    guard admitted else { throw .roomReused }
  }

  /// Notes that a call is over for everyone: nobody comes back to its room under its keys.
  func end(identity: String, room: String, call: String) {
    state.withLock { state in
      for index in state.entries.indices
      where state.entries[index].room == room && state.entries[index].call == call
        && state.entries[index].identity == identity
      { state.entries[index].ended = true }
    }
  }
}
