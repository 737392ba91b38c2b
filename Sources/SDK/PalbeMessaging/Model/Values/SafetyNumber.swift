public import Foundation
import PalbeChatCore
import PalbeUnits

/// A device as far as a safety number covers it.
public struct DeviceMaterial: Hashable, Sendable {
  /// `mdv_…`.
  public let deviceId: String
  /// Its MLS signature key, as in its leaves.
  public let signatureKey: Data

  /// A device and its key.
  public init(deviceId: String, signatureKey: Data) {
    (self.deviceId, self.signatureKey) = (deviceId, signatureKey)
  }
}

/// What is shown of two people's devices.
public struct SafetyNumberResult: Hashable, Sendable {
  /// 60 digits, the same on both sides: two halves of six groups of five (S0-108).
  public let safetyNumber: String
  /// SHA-256 of this user's devices.
  public let localDeviceSetHash: Data
  /// SHA-256 of the other's: what `chat.verify(_:deviceSetHash:)` takes.
  public let peerDeviceSetHash: Data
  /// What a code on the screen holds, for the other to scan.
  public let qrPayload: Data

  /// For previews and tests of apps.
  public init(safetyNumber: String, localDeviceSetHash: Data, peerDeviceSetHash: Data, qrPayload: Data) {
    self.safetyNumber = safetyNumber
    self.localDeviceSetHash = localDeviceSetHash
    self.peerDeviceSetHash = peerDeviceSetHash
    self.qrPayload = qrPayload
  }
}

/// What two people compare, to know that no stranger's device is among theirs (S0-107 to S0-110).
///
/// `chat.safetyNumber()` gives all of it; these are the parts, for an app's own screens and for other platforms.
public enum SafetyNumber {
  /// Of the algorithm; a part of what is hashed.
  public static let version: UInt16 = PalbeChatCore.SafetyNumber.version

  /// 60 digits, the same on both sides.
  /// - Parameters:
  ///   - localMaterial: `identityMaterial` of this user's devices.
  ///   - remoteMaterial: `identityMaterial` of the other's.
  public static func compute(
    localUserId: String, localMaterial: Data, remoteUserId: String, remoteMaterial: Data
  ) -> String {
    PalbeChatCore.SafetyNumber.compute(
      localUserId: localUserId, localMaterial: [UInt8](localMaterial), remoteUserId: remoteUserId,
      remoteMaterial: [UInt8](remoteMaterial))
  }

  /// What the code on the screen holds: version and both sides' device-set hashes.
  public static func qrPayload(
    version: UInt16 = SafetyNumber.version, localMaterial: Data, remoteMaterial: Data
  ) -> Data {
    Data(
      PalbeChatCore.SafetyNumber.qrPayload(
        version: version, localMaterial: [UInt8](localMaterial), remoteMaterial: [UInt8](remoteMaterial)))
  }

  /// A user's devices as bytes: each one's `fingerprintInput`, in ascending order, one after the other. A device whose id
  /// is none counts by the text of its id, so that it is never left out.
  public static func identityMaterial(_ devices: [DeviceMaterial]) -> Data {
    let inputs = Set(
      devices.map { device in
        fingerprintInput(
          signatureKey: device.signatureKey,
          partyIdentity: uuidBytes(fromDeviceId: device.deviceId) ?? Data(device.deviceId.utf8))
      })
    return Data(inputs.sorted { $0.lexicographicallyPrecedes($1) }.joined())
  }

  /// A device as bytes: its key and the 16 bytes of its id.
  public static func fingerprintInput(signatureKey: Data, partyIdentity: Data) -> Data {
    signatureKey + partyIdentity
  }

  /// The 16 bytes of a device's id, `mdv_…`; nil for another text.
  public static func uuidBytes(fromDeviceId deviceId: String) -> Data? {
    PalbeChatCore.SafetyNumber.uuidBytes(fromDeviceId: deviceId).map { Data($0) }
  }

  /// The twelve groups of five that people read to each other.
  public static func groups(of safetyNumber: String) -> [String] {
    PalbeChatCore.SafetyNumber.groups(safetyNumber)
  }
}
