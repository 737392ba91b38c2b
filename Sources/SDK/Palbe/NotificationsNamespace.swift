public import Foundation

/// `pb.notifications`: where pushes reach this device.
///
/// Both calls come from delegates that can neither throw nor wait: they return at once, and without a configuration or a
/// signed-in user they only log. Hand the token in again after a sign-in; a token that the server has is not sent again.
public struct NotificationsNamespace: Sendable {
  let host: PalbaseHost

  /// The token of ordinary pushes, from `application(_:didRegisterForRemoteNotificationsWithDeviceToken:)`.
  public func registerDeviceToken(_ token: Data) { register(token, "ios") }

  /// The token of calls, from `pushRegistry(_:didUpdate:for:)`. It is kept beside the other one.
  public func registerVoipToken(_ token: Data) { register(token, "ios_voip") }

  private func register(_ token: Data, _ platform: String) {
    host.runtimeIfConfigured()?.pushTokens.register([UInt8](token), platform: platform)
  }
}
