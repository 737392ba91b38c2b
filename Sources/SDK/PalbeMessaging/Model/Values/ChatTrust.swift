public import Foundation

/// Whether the other side's devices are those that the user compared (S0-109, S0-111).
public enum ChatTrust: Hashable, Sendable {
  /// Nobody compared.
  case unverified
  /// They are those that were compared.
  case verified
  /// They are no longer: a device came or went. It stays so until they are compared again.
  case changed(KeyChangeEvent)
}

/// A change of the devices of somebody who was verified.
public struct KeyChangeEvent: Hashable, Sendable {
  /// `usr_…`.
  public let userId: String
  /// `mdv_…`.
  public let addedDeviceIds: [String]
  /// `mdv_…`.
  public let removedDeviceIds: [String]
  /// Of the devices that were verified, 32 bytes.
  public let oldHash: Data
  /// Of those that are there now, 32 bytes.
  public let newHash: Data
  /// When this device noticed.
  public let at: Date

  /// For previews and tests of apps.
  public init(
    userId: String, addedDeviceIds: [String], removedDeviceIds: [String], oldHash: Data, newHash: Data,
    at: Date
  ) {
    self.userId = userId
    self.addedDeviceIds = addedDeviceIds
    self.removedDeviceIds = removedDeviceIds
    self.oldHash = oldHash
    self.newHash = newHash
    self.at = at
  }
}
