import PalbeBackendCore
import PalbeUnits
import PalbeWire

/// One push to one device: that something waits for it in a group, and nothing of what (requirements 4.2, 2.12).
package struct PushNotification: Hashable, Sendable {
  package var device: DeviceID
  package var group: GroupID
  package var isWelcome: Bool
  package var token: PushToken

  /// One line of JSON: the address, and the body that the device gets (S0-123).
  package var line: [UInt8] {
    let json = JSONWriter.object { json in
      json.member("platform", token.platform == .ios ? "ios" : "ios_voip")
      json.member("token", Hex.encode(token.bytes))
      // A push that waits for the device is replaced by the next one of the same group.
      json.member("collapse_id", group)
      json.key("payload")
      json.object {
        $0.member("pb_kind", "messaging_wake")
        $0.member("pb_wake", isWelcome ? "welcome" : "message")
        $0.member("pb_group", group)
      }
    }
    return json.bytes + [UInt8(ascii: "\n")]
  }
}

/// Pushes on their way, in virtual time: a newer one replaces an older one of the same device and group, and one that fails
/// comes again later, each time twice as late.
struct PushQueue {
  private struct Key: Hashable {
    var device: DeviceID
    var group: GroupID
    var platform: PushPlatform
  }
  private struct Entry {
    var push: PushNotification
    var attempts = 0
    var number: UInt64
  }

  /// How often one is tried.
  static let attemptLimit = 6
  static let firstDelay = TimeDelta.seconds(1)
  private let capacity: Int
  private var entries: [Key: Entry] = [:]
  /// Entries by when they are due; those that were replaced are passed over.
  private var order: [(due: Instant, number: UInt64, key: Key)] = []
  private var count: UInt64 = 0
  /// Pushes that were given up, and those for which there was no room.
  private(set) var lostCount: UInt64 = 0

  init(capacity: Int) { self.capacity = capacity }

  var waitingCount: Int { entries.count }

  private func key(_ push: PushNotification) -> Key {
    Key(device: push.device, group: push.group, platform: push.token.platform)
  }

  mutating func add(_ push: PushNotification, at now: Instant) {
    let key = key(push)
    guard entries[key] != nil || entries.count < capacity else {
      lostCount += 1
      return
    }
    put(push, key, due: now, attempts: 0)
  }

  private mutating func put(_ push: PushNotification, _ key: Key, due: Instant, attempts: Int) {
    count += 1
    entries[key] = Entry(push: push, attempts: attempts, number: count)
    // Kept in order: what comes new is due now, and retries are few.
    let place = order.lastIndex { $0.due <= due }.map { $0 + 1 } ?? 0
    order.insert((due, count, key), at: place)
  }

  /// When the next one is due.
  mutating func nextDeadline() -> Instant? {
    dropReplaced()
    return order.first?.due
  }

  private mutating func dropReplaced() {
    var replaced = 0
    while replaced < order.count, entries[order[replaced].key]?.number != order[replaced].number {
      replaced += 1
    }
    if replaced > 0 { order.removeFirst(replaced) }
  }

  /// The push that is due, taken out; it is to be told to `failed` when it did not go.
  mutating func next(at now: Instant) -> (push: PushNotification, attempts: Int)? {
    dropReplaced()
    guard let first = order.first, first.due <= now, let entry = entries.removeValue(forKey: first.key) else {
      return nil
    }
    order.removeFirst()
    return (entry.push, entry.attempts)
  }

  /// Tries again later, unless a newer one waits or it was tried often enough.
  mutating func failed(_ push: PushNotification, attempts: Int, at now: Instant) {
    let key = key(push)
    guard entries[key] == nil else { return }
    guard attempts + 1 < Self.attemptLimit, entries.count < capacity else {
      lostCount += 1
      return
    }
    put(push, key, due: now + Self.firstDelay * (1 << attempts), attempts: attempts + 1)
  }
}
