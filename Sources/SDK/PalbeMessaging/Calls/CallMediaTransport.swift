public import Foundation

/// What a participant publishes in a call.
public enum CallMedia: Sendable, Equatable {
  /// The microphone alone; on the wire `["audio"]`.
  case audio
  /// Microphone and camera; on the wire `["audio","video"]`.
  case audioVideo

  /// True when a camera track is published.
  public var publishesVideo: Bool { self == .audioVideo }
}

/// The kind of a media track.
public enum CallTrackKind: String, Sendable {
  case audio, video
}

/// What a media transport reports. The call's state follows these events and nothing else.
public enum CallMediaEvent: Sendable, Equatable {
  /// Media can flow: the room is joined and the encrypted transport is up.
  case connected
  /// The transport is gone for good; no event follows.
  case disconnected
  /// Someone is in the room. `identity` is `user#device`, or a bare user.
  case participantConnected(identity: String)
  /// Someone left the room.
  case participantDisconnected(identity: String)
  /// A remote track's media is arriving.
  case trackSubscribed(identity: String, kind: CallTrackKind)
  /// Who speaks now, loudest first.
  case activeSpeakersChanged(identities: [String])
  /// A remote participant's microphone or camera was switched.
  case participantUpdated(identity: String, audioMuted: Bool, videoEnabled: Bool)
}

/// The seam between calls and the media engine that carries them.
///
/// `PalbeCall.enable()` registers Palbe's own engine; an app may register another one:
///
///     CallMediaRegistry.shared.register { e2ee in MyTransport(e2ee: e2ee) }
public protocol CallMediaTransport: Sendable {
  /// Joins the room that `token` grants and publishes `media`.
  ///
  /// - Parameters:
  ///   - edgeUrl: the SFU's `ws://` or `wss://` address.
  ///   - token: the access token of this device for this room.
  ///   - media: what this device publishes.
  ///   - onEvent: called in order, from any thread, until `.disconnected`.
  /// - Throws: when the room cannot be joined; nothing is left running then.
  func connect(
    edgeUrl: String, token: String, media: CallMedia,
    onEvent: @escaping @Sendable (CallMediaEvent) -> Void
  ) async throws

  /// Stops or resumes sending the microphone.
  func setMicrophoneMuted(_ muted: Bool) async throws

  /// Stops or resumes sending the camera.
  func setCameraEnabled(_ enabled: Bool) async throws

  /// Installs the 32-byte frame key of the current epoch. The same key again changes nothing.
  ///
  /// - Throws: when the key is empty or of another length, or the transport was made without end-to-end encryption.
  func setMediaKey(_ key: Data) async throws

  /// Leaves the room. Safe to call more than once.
  func disconnect() async
}

/// When a newly installed frame key starts to protect what is sent.
public enum SendSwitch: Sendable, Equatable {
  /// At once: the epoch removed someone.
  case now
  /// On `confirmSendKey()`: the other devices may not have the key yet.
  case whenConfirmed
}

/// The refined seam: a transport that lets the caller decide when a new key protects what is sent.
public protocol CallMediaRekeying: CallMediaTransport {
  /// Installs a 32-byte frame key. It is readable at once and sent under as `sending` says.
  func setMediaKey(_ key: Data, sending: SendSwitch) async throws

  /// Sends under the newest installed key from now on.
  func confirmSendKey() async

  /// Installs the signer and verifier of media manifests, or removes them.
  func setMediaAuthenticator(_ authenticator: (any CallMediaAuthenticator)?) async
}

/// Signs this device's media manifests and verifies those of others.
public protocol CallMediaAuthenticator: Sendable {
  /// A signature over `manifest` by this device's leaf key.
  func sign(_ manifest: Data) throws -> Data

  /// True when `signature` over `manifest` is that of the member with `identity`.
  func verify(_ manifest: Data, signature: Data, identity: String) -> Bool
}

/// Makes a transport; `e2ee` is false only where the app asked for a call without end-to-end encryption.
public typealias CallMediaFactory = @Sendable (_ e2ee: Bool) -> any CallMediaTransport
