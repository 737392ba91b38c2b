import PalbeFrameEncryption

/// Call keys that were set before there was a session to take them, oldest first.
struct PendingKeys: Sendable {
  /// As many as a key ring keeps readable, and the one it sends under.
  private static let limit = 33

  private(set) var keys: [(key: [UInt8], sending: PalbeFrameEncryption.SendSwitch)] = []

  /// The newest key again changes nothing.
  mutating func append(_ key: [UInt8], sending: PalbeFrameEncryption.SendSwitch) {
    guard keys.last?.key != key else { return }
    if keys.count == Self.limit { keys.removeFirst() }
    keys.append((key, sending))
  }

  /// The newest key is sent under at once.
  mutating func confirm() {
    if !keys.isEmpty { keys[keys.count - 1].sending = .now }
  }
}
