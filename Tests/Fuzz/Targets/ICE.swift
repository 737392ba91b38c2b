import PalbeCrypto
import PalbeICE
import PalbeUnits

extension FuzzTarget {
  /// What parses must encode and parse again to the same fields. Then the input's attributes go, under the right
  /// password, to both agents, so that the code behind authentication sees them too.
  static let stun = FuzzTarget(name: "stun") { bytes in
    if let message = try? STUNMessage.parse(bytes.span) {
      let encoded = message.encoded(integrityKey: [1, 2, 3])
      // Repairing text that is not UTF-8 can make a message longer than any that is read.
      if encoded.count <= 2_048 {
        guard let again = try? STUNMessage.parse(encoded.span) else {
          preconditionFailure("does not parse again")
        }
        precondition(again.isAuthentic(in: encoded.span, key: [1, 2, 3]), "integrity does not hold")
        precondition(
          again.mappedAddress == message.mappedAddress && again.role == message.role
            && again.priority == message.priority && again.username == message.username
            && again.unknownAttributes == message.unknownAttributes, "does not round-trip")
      }
    }
    reachAgents(bytes)
  }

  /// What parses must print and parse again to the same candidate.
  static let iceCandidate = FuzzTarget(name: "ice-candidate") { bytes in
    guard let candidate = try? ICECandidate.parse(String(decoding: bytes, as: UTF8.self)) else { return }
    precondition((try? ICECandidate.parse(candidate.attribute)) == candidate, "does not round-trip")
  }

  private static func reachAgents(_ bytes: [UInt8]) {
    var random = RandomSource(seed: 1)
    let ours = ICECredentials(using: &random)
    let theirs = ICECredentials(using: &random)
    let address = SocketAddress(ipv4: 192, 0, 2, 1, port: 9)
    var lite = ICELiteAgent(local: ours)
    var full = ICEAgent(role: .controlled, local: ours, tieBreaker: 1 << 40, random: RandomSource(seed: 2))
    full.addLocalCandidate(ICECandidate(.host, address), base: 0, at: .zero)
    full.setRemote(theirs, isLite: false, at: .zero)

    // A request whose attributes are the input, cut to whole words, after the right USERNAME.
    var request = STUNMessage(.request, transactionID: STUNTransactionID(high: 1, low: 2))
    request.username = Array("\(ours.usernameFragment):\(theirs.usernameFragment)".utf8)
    var datagram = request.encoded()
    datagram.removeLast(8)
    datagram += bytes.prefix(min(bytes.count & ~3, 1_024))
    let length = datagram.count + 4
    datagram[2] = UInt8(length >> 8)
    datagram[3] = UInt8(length & 255)
    let code = HMAC<SHA1>.authenticationCode(for: datagram, using: Array(ours.password.utf8))
    datagram += [0, 8, 0, 20] + code
    _ = lite.handle(datagram.span, from: address, at: .zero)
    full.handle(datagram.span, from: address, base: 0, at: .zero)
    full.handle(bytes.span, from: address, base: 0, at: .zero)
    while full.pollTransmit() != nil {}
    for second in 1...40 { full.handleTimeout(at: .zero + .seconds(second)) }
  }
}
