import PalbeCrypto
import PalbeICE
import PalbeUnits
import PalbeWire

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

  /// A TCP stream in pieces, whose size is the first byte: the frames are those of a plain reading, whatever the pieces,
  /// and each goes to what reads answers of a STUN server.
  static let streamFrames = FuzzTarget(name: "stream-frames") { bytes in
    guard let size = bytes.first else { return }
    let stream = Array(bytes.dropFirst())
    let server = SocketAddress(ipv4: 192, 0, 2, 1, port: 9)
    var query = ReflexiveAddressQuery(servers: [server], random: RandomSource(seed: 1), at: .zero)
    var expected: [ArraySlice<UInt8>] = []
    var offset = 0
    while offset + 2 <= stream.count {
      let end = offset + 2 + (Int(stream[offset]) << 8 | Int(stream[offset + 1]))
      guard end - offset - 2 <= 1_500, end <= stream.count else { break }
      if end > offset + 2 { expected.append(stream[offset + 2..<end]) }
      offset = end
    }
    var reader = StreamFrameReader(frameLimit: 1_500, capacity: 2_000)
    var rest = stream[...]
    var count = 0
    while !rest.isEmpty {
      _ = reader.fill { room in
        precondition(room.count > 0, "no room")
        let length = min(Int(size) + 1, room.count, rest.count)
        for index in 0..<length { room[index] = rest[rest.startIndex + index] }
        rest = rest.dropFirst(length)
        return length
      }
      do {
        while try reader.advance() {
          reader.withFrame { frame in
            precondition(count < expected.count, "too many frames")
            precondition([UInt8](frame.span) == Array(expected[count]), "other frame")
            query.handle(frame.span, from: server)
          }
          count += 1
        }
      } catch { break }
    }
    precondition(count == expected.count, "frames lost")
  }

  private static func reachAgents(_ bytes: [UInt8]) {
    var random = RandomSource(seed: 1)
    let ours = ICECredentials(using: &random)
    let theirs = ICECredentials(using: &random)
    let address = SocketAddress(ipv4: 192, 0, 2, 1, port: 9)
    var lite = ICELiteAgent(local: ours)
    var full = ICEAgent(role: .controlled, local: ours, tieBreaker: 1 << 40, random: RandomSource(seed: 2))
    full.addLocalCandidate(ICECandidate(.host, address), base: 0, at: .zero)
    full.addLocalCandidate(ICECandidate.active(address), base: 0, at: .zero)
    full.addRemoteCandidate(ICECandidate(.host, address.overTCP), at: .zero)
    full.setRemote(theirs, isLite: false, at: .zero)

    // A request whose attributes are the input, after the right USERNAME.
    var request = STUNMessage(.request, transactionID: STUNTransactionID(high: 1, low: 2))
    request.username = Array("\(ours.usernameFragment):\(theirs.usernameFragment)".utf8)
    let datagram = sealed(request, bytes, password: ours.password)
    var answer = ByteWriter()
    lite.setRemote(theirs)
    _ = lite.handle(datagram.span, from: address, at: .zero, answer: &answer)
    reachCheck(of: &lite, bytes, from: address, password: theirs.password)
    full.handle(datagram.span, from: address, base: 0, at: .zero)
    full.handle(bytes.span, from: address, base: 0, at: .zero)
    full.handle(datagram.span, from: address.overTCP, base: 0, at: .zero)
    full.handle(bytes.span, from: address.overTCP, base: 0, at: .zero)
    while full.pollTransmit() != nil {}
    for second in 1...40 {
      full.handleTimeout(at: .zero + .seconds(second))
      if second % 8 == Int(bytes.first ?? 0) & 7 {
        full.disconnected(from: address.overTCP, base: 0, at: .zero + .seconds(second))
      }
    }
  }

  /// An answer to the lite agent's own check, whose attributes are the input.
  private static func reachCheck(
    of lite: inout ICELiteAgent, _ bytes: [UInt8], from address: SocketAddress, password: String
  ) {
    var random = RandomSource(seed: 3)
    var check = ByteWriter()
    while let (_, id) = lite.pollCheck(at: .zero, using: &random, into: &check) {
      let datagram = sealed(STUNMessage(.success, transactionID: id), bytes, password: password)
      _ = lite.handle(datagram.span, from: address, at: .zero, answer: &check)
      precondition(ICELiteAgent.answeredTransaction(of: datagram.span) == id, "other transaction")
    }
  }

  /// The message with the input, cut to whole words, as its further attributes, and its integrity.
  private static func sealed(_ message: STUNMessage, _ bytes: [UInt8], password: String) -> [UInt8] {
    var datagram = message.encoded()
    datagram.removeLast(8)
    datagram += bytes.prefix(min(bytes.count & ~3, 1_024))
    let length = datagram.count + 4
    datagram[2] = UInt8(length >> 8)
    datagram[3] = UInt8(length & 255)
    let code = HMAC<SHA1>.authenticationCode(for: datagram, using: Array(password.utf8))
    return datagram + [0, 8, 0, 20] + code
  }
}
