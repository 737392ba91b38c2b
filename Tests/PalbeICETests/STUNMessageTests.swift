import PalbeICE
import PalbeUnits
import PalbeWire
import Testing

@Suite("RFC 8489: STUN messages")
struct STUNMessageTests {
  private let key = Array("0123456789abcdef012345".utf8)
  private let id = STUNTransactionID(high: 1, low: 2)

  private func everything() -> STUNMessage {
    var message = STUNMessage(.request, transactionID: id)
    message.username = Array("abcd:efgh".utf8)
    message.priority = 0x6e7f_00ff
    message.useCandidate = true
    message.role = .controlling(tieBreaker: 0x0102_0304_0506_0708)
    message.mappedAddress = SocketAddress(host: "2001:db8::7", port: 65_535)
    message.errorCode = STUNMessage.ErrorCode(487, "Role Conflict")
    message.unknownAttributes = [0x7001, 0x7002, 0x7003]
    message.software = "palbe"
    return message
  }

  /// The fields alone, without what the parser adds.
  private func fields(_ parsed: STUNMessage) -> [String] {
    [
      "\(parsed.messageClass)", "\(parsed.method)", "\(parsed.transactionID)", "\(parsed.username ?? [])",
      "\(parsed.priority ?? 0)", "\(parsed.useCandidate)", parsed.role.map { "\($0)" } ?? "",
      parsed.mappedAddress?.description ?? "", parsed.errorCode.map { "\($0)" } ?? "",
      "\(parsed.unknownAttributes)", parsed.software ?? "",
    ]
  }

  @Test("RFC 8489 §5: round trip of every class")
  func roundTrip() throws {
    for messageClass in [STUNMessage.Class.request, .indication, .success, .failure] {
      var message = everything()
      message.messageClass = messageClass
      let bytes = message.encoded(integrityKey: key)
      let parsed = try STUNMessage.parse(bytes)
      #expect(fields(parsed) == fields(message))
      #expect(parsed.hasFingerprint)
      #expect(parsed.isAuthentic(in: bytes, key: key))
    }
  }

  @Test("RFC 8489 §5: the method's bits go around the class's")
  func methodBits() throws {
    for method in [UInt16(1), 2, 0xf, 0x10, 0x7f, 0x80, 0xff] {
      let bytes = STUNMessage(.failure, method: method, transactionID: id).encoded()
      let parsed = try STUNMessage.parse(bytes)
      #expect(parsed.method == method)
      #expect(parsed.messageClass == .failure)
    }
  }

  @Test("Golden: a check as our agents send it")
  func golden() {
    var message = STUNMessage(.request, transactionID: id)
    message.username = Array("abcd:efgh".utf8)
    message.priority = 0x6eff_ffff
    message.role = .controlling(tieBreaker: 9)
    message.useCandidate = true
    #expect(Hex.encode(message.encoded(integrityKey: key)) == Self.goldenCheck)
  }
  static let goldenCheck =
    "000100482112a44200000001000000000000000200060009616263643a65666768000000002400046effffff"
    + "802a0008000000000000000900250000000800146296da8fccdeedf2df0265715a90f5afeb859c1d80280004bb9a27e3"

  @Test("Truncation: no prefix of a message is a message")
  func truncation() {
    let bytes = everything().encoded(integrityKey: key)
    for count in 0..<bytes.count {
      #expect(throws: STUNError.self) { try STUNMessage.parse(Array(bytes[..<count])) }
      // The same with a header that owns up to the cut.
      var honest = Array(bytes[..<count])
      guard count >= 20 else { continue }
      honest[2] = UInt8((count - 20) >> 8)
      honest[3] = UInt8((count - 20) & 255)
      let parsed = try? STUNMessage.parse(honest)
      #expect(parsed?.hasFingerprint != true)
    }
  }

  @Test("RFC 8489 §14.5: attributes after MESSAGE-INTEGRITY do not count")
  func afterIntegrity() throws {
    var bytes = STUNMessage(.request, transactionID: id).encoded(integrityKey: key)
    bytes.removeLast(8)
    bytes += [0x00, 0x25, 0, 0, 0x7f, 0x01, 0, 0]
    bytes[3] = UInt8(bytes.count - 20)
    let parsed = try STUNMessage.parse(bytes)
    #expect(!parsed.useCandidate)
    #expect(parsed.notUnderstood.isEmpty)
    #expect(parsed.isAuthentic(in: bytes, key: key))
  }

  @Test("RFC 8489 §14: unknown attributes below 0x8000 are reported, others skipped, the first of two counts")
  func unknownAndRepeated() throws {
    var bytes = STUNMessage(.request, transactionID: id).encoded()
    bytes.removeLast(8)
    bytes += [0x7f, 0x01, 0, 1, 0xaa, 0, 0, 0, 0xff, 0x01, 0, 0]
    bytes += [0x00, 0x24, 0, 4, 0, 0, 0, 1, 0x00, 0x24, 0, 4, 0, 0, 0, 2]
    bytes[3] = UInt8(bytes.count - 20)
    let parsed = try STUNMessage.parse(bytes)
    #expect(parsed.notUnderstood == [0x7f01])
    #expect(parsed.priority == 1)
  }

  @Test("Bounded: too many attributes, wrong lengths and lying attributes are refused")
  func refused() {
    func parse(_ attributes: [UInt8]) -> STUNError? {
      var bytes = STUNMessage(.request, transactionID: id).encoded()
      bytes.removeLast(8)
      bytes += attributes
      bytes[2] = UInt8((bytes.count - 20) >> 8)
      bytes[3] = UInt8((bytes.count - 20) & 255)
      do {
        _ = try STUNMessage.parse(bytes)
        return nil
      } catch { return error }
    }
    let empties = [[UInt8]](repeating: [0xff, 0, 0, 0], count: 33).flatMap { $0 }
    #expect(parse(empties) == .tooManyAttributes(limit: 32))
    #expect(parse([0x00, 0x06, 0xff, 0xff]) == .truncatedAttribute(type: 6))
    #expect(parse([0x00, 0x24, 0, 3, 0, 0, 0, 0]) == .malformedAttribute(type: 0x24))
    #expect(parse([0x00, 0x20, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0]) == .malformedAttribute(type: 0x20))
    #expect(parse([0x00, 0x20, 0, 4, 0, 1, 0, 0]) == .malformedAttribute(type: 0x20))
    #expect(parse([0x00, 0x09, 0, 4, 0, 0, 7, 0]) == .malformedAttribute(type: 9))
    #expect(parse([0x80, 0x28, 0, 4, 0, 0, 0, 0]) == .wrongFingerprint)
  }

  @Test("RFC 7983 §7: media and DTLS are not STUN")
  func demultiplexing() {
    #expect(!STUNMessage.isSTUN([UInt8](repeating: 0x80, count: 40)))
    #expect(!STUNMessage.isSTUN([22, 254, 253]))
    #expect(STUNMessage.isSTUN(STUNVector.request))
  }

  @Test("Garbage never traps")
  func garbage() {
    var random = RandomSource(seed: 11)
    for _ in 0..<2_000 {
      var bytes = STUNVector.request
      for _ in 0..<(1 + random.next() % 4) {
        bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      bytes.removeLast(8)
      bytes[3] = UInt8(bytes.count - 20)
      _ = try? STUNMessage.parse(bytes)
    }
  }
}
