@_exported public import Palbase

/// The whole SDK, as one name.
///
///     try await pb.auth.signIn(email: "anna@example.com", password: password)
///
/// It configures itself from `Palbase-Info.plist` when it is first used. Without that file every throwing call throws
/// `BackendError.notConfigured`, and `pb.configure(onError:)` hears of it.
public let pb = PalbeNamespace(host: .shared)

/// What `pb` offers; modules such as PalbeMessaging add to it.
public struct PalbeNamespace: Sendable {
  package let host: PalbaseHost

  package init(host: PalbaseHost) { self.host = host }

  /// Shares this app's stores with its extensions, through the container of an app group.
  ///
  /// Call it once, first thing, in the app and in each extension. What the app stored for itself before moves there by
  /// copy, check and removal; when that fails, the originals stay. Without this call everything stays private to
  /// the app, and only an extension that shows decrypted notifications is missing.
  ///
  /// - Parameter messagingAppGroup: such as `group.com.example.chat`.
  public func configure(messagingAppGroup: String) { host.configure(group: messagingAppGroup) }

  /// Hears of failures that no call waits for: a missing configuration above all. The latest handler counts.
  ///
  /// - Parameter onError: called from any thread.
  public func configure(onError: @escaping @Sendable (BackendError) -> Void) {
    host.configure(onError: onError)
  }

  /// Signing in and out.
  public var auth: AuthNamespace { AuthNamespace(host: host) }

  /// Push tokens.
  public var notifications: NotificationsNamespace { NotificationsNamespace(host: host) }
}
