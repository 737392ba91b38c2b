import PalbeChatCore
import PalbeUnits
import PalbeWire
import Testing

@Suite("Safety numbers") struct SafetyNumberTests {
  let ada, ben: UserID
  let adas, bens: [DeviceMaterial]

  init() {
    var samples = Samples(seed: 11)
    func devices(_ count: Int) -> [DeviceMaterial] {
      (0..<count).map { _ in DeviceMaterial(device: samples.id(), signatureKey: samples.random.bytes(32)) }
    }
    (ada, ben) = (samples.id(), samples.id())
    (adas, bens) = (devices(3), devices(2))
  }

  @Test("S0-108 both sides see the same 60 digits, in whatever order their devices are")
  func symmetry() {
    let here = SafetyNumber.result(local: ada, localDevices: adas, remote: ben, remoteDevices: bens)
    let there = SafetyNumber.result(
      local: ben, localDevices: bens.reversed(), remote: ada, remoteDevices: adas.reversed())
    #expect(here.safetyNumber == there.safetyNumber)
    #expect(here.safetyNumber.utf8.count == 60)
    #expect(here.safetyNumber.utf8.allSatisfy { (48...57).contains($0) })
    #expect(here.localDeviceSetHash == there.peerDeviceSetHash)
    #expect(here.peerDeviceSetHash == there.localDeviceSetHash)
    let groups = SafetyNumber.groups(here.safetyNumber)
    #expect(groups.count == 12 && groups.allSatisfy { $0.utf8.count == 5 })
    #expect(groups.joined() == here.safetyNumber)
  }

  @Test("S0-111 another device, another key, another person: another number")
  func changes() {
    func number(_ local: UserID, _ localDevices: [DeviceMaterial]) -> String {
      SafetyNumber.result(local: local, localDevices: localDevices, remote: ben, remoteDevices: bens)
        .safetyNumber
    }
    var otherKey = adas
    otherKey[0].signatureKey[31] ^= 1
    var samples = Samples(seed: 99)
    let numbers = [
      number(ada, adas), number(ada, Array(adas.dropLast())), number(ada, adas + bens), number(ada, otherKey),
      number(samples.id(), adas), number(ada, []),
    ]
    #expect(Set(numbers).count == numbers.count)
    // A device that is named twice is one.
    #expect(number(ada, adas + adas) == numbers[0])
    // The remote half stays.
    let halves = numbers.map { [String($0.prefix(30)), String($0.suffix(30))] }
    #expect(Set(halves[0]).intersection(halves[1]).count == 1)
  }

  @Test("S0-110 a device is its key and the bytes of its id")
  func inputs() throws {
    let device = adas[0]
    #expect(SafetyNumber.uuidBytes(fromDeviceId: device.device.text) == device.device.bytes)
    for wrong in ["", "mdv_", ada.text, device.device.text + "0", "MDV" + device.device.text.dropFirst(3)] {
      #expect(SafetyNumber.uuidBytes(fromDeviceId: wrong) == nil)
    }
    let input = SafetyNumber.fingerprintInput(
      signatureKey: device.signatureKey, partyIdentity: device.device.bytes)
    #expect(input == device.signatureKey + device.device.bytes)
    #expect(SafetyNumber.identityMaterial([device]) == input)
    let both = SafetyNumber.identityMaterial(Array(adas.prefix(2)))
    #expect(both.count == 96 && both[..<48].lexicographicallyPrecedes(both[48...]))
  }

  @Test("S0-110 a scanned code agrees on both sides, and with nobody else's")
  func codes() throws {
    let (own, other) = (SafetyNumber.identityMaterial(adas), SafetyNumber.identityMaterial(bens))
    let shown = SafetyNumber.qrPayload(version: 1, localMaterial: own, remoteMaterial: other)
    let code = try SafetyNumberCode(scanned: shown.span)
    // Ben scans what Ada shows.
    #expect(code.agrees(localMaterial: other, remoteMaterial: own))
    #expect(!code.agrees(localMaterial: own, remoteMaterial: other))
    #expect(!code.agrees(localMaterial: other, remoteMaterial: SafetyNumber.identityMaterial([adas[0]])))
    #expect(!code.agrees(localMaterial: SafetyNumber.identityMaterial([bens[0]]), remoteMaterial: own))
    let newer = SafetyNumber.qrPayload(version: 2, localMaterial: own, remoteMaterial: other)
    #expect(try !SafetyNumberCode(scanned: newer.span).agrees(localMaterial: other, remoteMaterial: own))
  }

  @Test("S0-110 every prefix of a code is refused, and unknown fields are passed over")
  func truncation() throws {
    let shown = SafetyNumber.qrPayload(
      version: 1, localMaterial: [1], remoteMaterial: SafetyNumber.identityMaterial(bens))
    func scan(_ bytes: [UInt8]) throws -> SafetyNumberCode { try SafetyNumberCode(scanned: bytes.span) }
    let code = try scan(shown)
    #expect(code.encoded == shown)
    for count in 0..<shown.count {
      #expect(throws: WireError.self) { try scan(Array(shown[..<count])) }
    }
    #expect(try scan([9, 2, 7, 7] + shown + [200, 0]) == code)
    #expect(throws: WireError.self) { try scan(shown + shown) }
    #expect(throws: WireError.self) { try scan([1, 1, 1] + shown.dropFirst(4)) }
    #expect(throws: WireError.self) { try scan(shown + [9, 200] + [UInt8](repeating: 0, count: 200)) }
  }
}
