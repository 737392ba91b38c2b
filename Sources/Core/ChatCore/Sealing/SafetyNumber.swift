import PalbeCrypto
import PalbeUnits
import PalbeWire

/// A device as far as a safety number covers it.
package struct DeviceMaterial: Hashable, Sendable {
  /// The device.
  package var device: DeviceID
  /// Its MLS signature key, as in its leaves.
  package var signatureKey: [UInt8]

  /// A device and its key.
  package init(device: DeviceID, signatureKey: [UInt8]) {
    (self.device, self.signatureKey) = (device, signatureKey)
  }
}

/// What two people compare, to know that no stranger's device is among theirs (S0-107 to S0-110).
///
/// It changes with every device that either of them adds or loses. docs/wire-format.md has it for other languages.
package enum SafetyNumber {
  /// Of the algorithm; a part of what is hashed.
  package static let version: UInt16 = 1
  /// How often SHA-512 runs, so that a number that only looks alike is dear to make.
  package static let iterations = 5_200

  /// The number, both device-set hashes and the code to scan, from both sides' devices.
  package static func result(
    local: UserID, localDevices: [DeviceMaterial], remote: UserID, remoteDevices: [DeviceMaterial]
  ) -> SafetyNumberResult {
    let (own, other) = (identityMaterial(localDevices), identityMaterial(remoteDevices))
    let (ownHash, otherHash) = (deviceSetHash(own), deviceSetHash(other))
    return SafetyNumberResult(
      safetyNumber: compute(
        localUserId: local.text, localMaterial: own, remoteUserId: remote.text, remoteMaterial: other),
      localDeviceSetHash: ownHash, peerDeviceSetHash: otherHash,
      qrPayload: SafetyNumberCode(version: version, localHash: ownHash, remoteHash: otherHash).encoded)
  }

  /// 60 digits, the same on both sides: each party's 30, the lesser first.
  package static func compute(
    localUserId: String, localMaterial: [UInt8], remoteUserId: String, remoteMaterial: [UInt8]
  ) -> String {
    let halves = [digits(localUserId, localMaterial), digits(remoteUserId, remoteMaterial)]
    return halves.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.joined()
  }

  /// The twelve groups of five that people read to each other.
  package static func groups(_ safetyNumber: String) -> [String] {
    let digits = Array(safetyNumber.utf8)
    return stride(from: 0, to: digits.count, by: 5).map {
      String(decoding: digits[$0..<min($0 + 5, digits.count)], as: UTF8.self)
    }
  }

  /// A party's devices as bytes: each one's `fingerprintInput`, in ascending order, one after the other.
  package static func identityMaterial(_ devices: [DeviceMaterial]) -> [UInt8] {
    let inputs = Set(
      devices.map { fingerprintInput(signatureKey: $0.signatureKey, partyIdentity: $0.device.bytes) })
    return Array(inputs.sorted { $0.lexicographicallyPrecedes($1) }.joined())
  }

  /// A device as bytes: its key and the 16 bytes of its id.
  package static func fingerprintInput(signatureKey: [UInt8], partyIdentity: [UInt8]) -> [UInt8] {
    signatureKey + partyIdentity
  }

  /// The 16 bytes of a device's id, `mdv_…`; nil for another text.
  package static func uuidBytes(fromDeviceId text: String) -> [UInt8]? { DeviceID(text)?.bytes }

  /// What is remembered when somebody was verified: SHA-256 of their material (S0-109, S0-111).
  package static func deviceSetHash(_ material: [UInt8]) -> [UInt8] { SHA256.hash(material) }

  /// What the code on the screen holds; the other side compares it with its own view.
  package static func qrPayload(version: UInt16, localMaterial: [UInt8], remoteMaterial: [UInt8]) -> [UInt8] {
    SafetyNumberCode(
      version: version, localHash: deviceSetHash(localMaterial), remoteHash: deviceSetHash(remoteMaterial)
    ).encoded
  }

  /// A party's 30 digits: SHA-512, `iterations` times, over version, material and user id first, and over its last digest
  /// and the material then; of each five of the first 30 bytes the last five decimal digits.
  private static func digits(_ userId: String, _ material: [UInt8]) -> String {
    var writer = ByteWriter()
    writer.uint16(version)
    writer.append(material)
    writer.append(utf8: userId)
    var digest = SHA512.hash(writer.bytes)
    for _ in 1..<iterations {
      var state = SHA512()
      state.update(digest)
      state.update(material)
      digest = state.finalize()
    }
    return stride(from: 0, to: 30, by: 5).map { start in
      let number = digest[start..<start + 5].reduce(0) { $0 << 8 | UInt64($1) } % 100_000
      let text = String(number)
      return String(repeating: "0", count: 5 - text.utf8.count) + text
    }.joined()
  }
}

/// What is shown of two people's devices.
package struct SafetyNumberResult: Hashable, Sendable {
  /// 60 digits.
  package var safetyNumber: String
  /// SHA-256 of our devices.
  package var localDeviceSetHash: [UInt8]
  /// SHA-256 of theirs: what `verify` remembers.
  package var peerDeviceSetHash: [UInt8]
  /// What the code on our screen holds.
  package var qrPayload: [UInt8]
}
