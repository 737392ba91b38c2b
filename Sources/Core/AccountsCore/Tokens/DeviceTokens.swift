import PalbeBackendCore
public import PalbeCrypto
public import PalbeUnits
import PalbeWire

/// Device tokens: `mdv_….` and a code over user and device, under a key of the server's.
///
/// A token needs no table: it is valid as long as the delivery server knows the device as the user's. Any thread may ask.
public final class DeviceTokens: Sendable {
  private let key: SymmetricKey

  /// Makes and verifies tokens under a key.
  public init(key: consuming SymmetricKey) { self.key = key }

  /// The token of a user's device.
  public func token(user: UserID, device: DeviceID) -> String {
    device.text + "." + Base64.encode(code(user, device), alphabet: .url, padded: false)
  }

  /// The device of a token, if it is the user's; nil for anything else.
  public func device(_ token: String, of user: UserID) -> DeviceID? {
    guard token.utf8.count == 84, let dot = token.firstIndex(of: "."), let device = DeviceID(token[..<dot]),
      let code = Base64.decode(token[token.index(after: dot)...], alphabet: .url)
    else { return nil }
    return ConstantTime.equal(code.span, self.code(user, device).span) ? device : nil
  }

  private func code(_ user: UserID, _ device: DeviceID) -> [UInt8] {
    let message = Array("palbe device token".utf8) + user.bytes + device.bytes
    return HMAC<SHA256>.authenticationCode(for: message.span, using: key)
  }
}
