import PalbeMLSMessages
import PalbeUnits

/// Who sends: a device of a user. It is the identity in the credential of the device's leaves.
package struct DeviceName: Hashable, Sendable {
  /// Whose device.
  package var user: UserID
  /// Which of theirs.
  package var device: DeviceID

  /// A device of a user.
  package init(user: UserID, device: DeviceID) { (self.user, self.device) = (user, device) }

  /// From a basic credential of 32 bytes, the user's 16 and the device's 16; nil for any other.
  package init?(credential: Credential) {
    guard case .basic(let identity) = credential, identity.count == 32,
      let user = UserID(bytes: Array(identity[..<16])), let device = DeviceID(bytes: Array(identity[16...]))
    else { return nil }
    self.init(user: user, device: device)
  }

  /// The credential of the device's leaves.
  package var credential: Credential { .basic(identity: user.bytes + device.bytes) }
}
