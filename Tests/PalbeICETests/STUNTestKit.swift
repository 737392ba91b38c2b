import PalbeCrypto
import PalbeICE
import PalbeUnits
import PalbeWire

/// What a hostile or newer peer does and our encoder does not.
enum STUNTestKit {
  /// Appends MESSAGE-INTEGRITY to a message written by hand.
  static func seal(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
    var bytes = message
    bytes[2] = UInt8((bytes.count + 4) >> 8)
    bytes[3] = UInt8((bytes.count + 4) & 255)
    let code = HMAC<SHA1>.authenticationCode(for: bytes, using: key)
    return bytes + [0, 8, 0, 20] + code
  }
}

// `#expect` takes no spans.

extension STUNMessage {
  static func isSTUN(_ bytes: [UInt8]) -> Bool { isSTUN(bytes.span) }
  static func parse(_ bytes: [UInt8]) throws(STUNError) -> STUNMessage { try parse(bytes.span) }
  func isAuthentic(in bytes: [UInt8], key: [UInt8]) -> Bool { isAuthentic(in: bytes.span, key: key) }
}

/// What a lite agent did about a datagram, with its answer.
enum LiteAction: Equatable {
  case respond([UInt8])
  /// The peer chose this address.
  case respondAndSelect([UInt8], SocketAddress)
  /// The address answered a check of the agent's.
  case proven(isSelected: Bool)
  case ignored(ICEIgnoreReason)
}

extension ICELiteAgent {
  static func localUsernameFragment(of bytes: [UInt8]) -> String? { localUsernameFragment(of: bytes.span) }
  mutating func handle(_ bytes: [UInt8], from remote: SocketAddress, at now: Instant) -> LiteAction {
    var answer = ByteWriter(capacity: 128)
    return switch handle(bytes.span, from: remote, at: now, answer: &answer) {
    case .answered(let isSelected):
      isSelected ? .respondAndSelect(answer.bytes, remote) : .respond(answer.bytes)
    case .proven(let isSelected): .proven(isSelected: isSelected)
    case .ignored(let reason): .ignored(reason)
    }
  }

  /// The agent's own checks that are due.
  mutating func checks(
    at now: Instant, using random: inout RandomSource
  ) -> [(bytes: [UInt8], to: SocketAddress)] {
    var writer = ByteWriter(capacity: 128)
    var checks: [(bytes: [UInt8], to: SocketAddress)] = []
    while let (destination, _) = pollCheck(at: now, using: &random, into: &writer) {
      checks.append((writer.bytes, destination))
    }
    return checks
  }
}

extension ICEAgent {
  @discardableResult
  mutating func handle(
    _ bytes: [UInt8], from remote: SocketAddress, base: Int, at now: Instant
  ) -> ICEIgnoreReason? {
    handle(bytes.span, from: remote, base: base, at: now)
  }
}

extension ReflexiveAddressQuery {
  mutating func handle(_ bytes: [UInt8], from remote: SocketAddress) { handle(bytes.span, from: remote) }
}
