package import Foundation
import PalbeCallCore
import PalbeFrameEncryption
package import PalbeMessaging
import Synchronization

/// Palbe's engine behind the seam: one call through a LiveKit-compatible SFU.
///
/// Keys and switches may be set before `connect` and hold from the first packet on. What it throws is a `CallEngineError`.
package final class SFUCallTransport: CallMediaRekeying {
  private enum Phase: Sendable {
    case idle
    case joined(CallEngine)
    case over
  }

  private struct State {
    var phase = Phase.idle
    var keys = PendingKeys()
    var isMuted: [LocalTrack: Bool] = [:]
    var authenticator: (any CallMediaAuthenticator)?
  }

  private let e2ee: Bool
  private let devices: CallDevices
  private let state = Mutex(State())

  /// - Parameters:
  ///   - e2ee: frames are encrypted end to end; nothing is sent before the first key.
  ///   - devices: where media comes from and goes to.
  package init(e2ee: Bool, devices: CallDevices = CallDevices()) {
    self.e2ee = e2ee
    self.devices = devices
  }

  package func connect(
    edgeUrl: String, token: String, media: CallMedia,
    onEvent: @escaping @Sendable (CallMediaEvent) -> Void
  ) async throws {
    var configuration = CallEngine.Configuration(
      edgeURL: edgeUrl, token: token, encryption: e2ee ? .sframe : .none)
    configuration.audioSource = devices.microphone()
    if media.publishesVideo { configuration.videoSource = devices.camera() }
    let relay = EventRelay(onEvent)
    var hooks = devices.hooks
    hooks.onEvent = { [also = hooks.onEvent] event in
      also?(event)
      relay.take(event)
    }
    let engine = CallEngine(configuration, hooks: hooks)
    let pending = try state.withLock { state in
      guard case .idle = state.phase else { throw CallEngineError.alreadyStarted }
      state.phase = .joined(engine)
      return (keys: state.keys.keys, muted: state.isMuted)
    }
    do {
      for (key, sending) in pending.keys { try await engine.installKey(key, sending: sending) }
      for (track, muted) in pending.muted where configuration.publishes.contains(track) {
        try await engine.setMuted(track, muted)
      }
      try await engine.start()
    } catch {
      state.withLock { $0.phase = .over }
      await engine.stop()
      throw error
    }
  }

  package func setMicrophoneMuted(_ muted: Bool) async throws { try await setMuted(.microphone, muted) }

  package func setCameraEnabled(_ enabled: Bool) async throws { try await setMuted(.camera, !enabled) }

  private func setMuted(_ track: LocalTrack, _ muted: Bool) async throws {
    let engine = try state.withLock { state -> CallEngine? in
      switch state.phase {
      case .idle:
        state.isMuted[track] = muted
        return nil
      case .joined(let engine): return engine
      case .over: throw CallEngineError.notConnected
      }
    }
    try await engine?.setMuted(track, muted)
  }

  package func setMediaKey(_ key: Data) async throws { try await install(key, .automatic) }

  package func setMediaKey(_ key: Data, sending: PalbeMessaging.SendSwitch) async throws {
    switch sending {
    case .now: try await install(key, .now)
    case .whenConfirmed: try await install(key, .whenConfirmed)
    }
  }

  private func install(_ key: Data, _ sending: PalbeFrameEncryption.SendSwitch) async throws {
    let key = [UInt8](key)
    guard e2ee else { throw CallEngineError.encryptionIsOff }
    try CallEngine.check(key)
    let engine = try state.withLock { state -> CallEngine? in
      switch state.phase {
      case .idle:
        state.keys.append(key, sending: sending)
        return nil
      case .joined(let engine): return engine
      case .over: throw CallEngineError.notConnected
      }
    }
    try await engine?.installKey(key, sending: sending)
  }

  package func confirmSendKey() async {
    let engine = state.withLock { state -> CallEngine? in
      if case .joined(let engine) = state.phase { return engine }
      state.keys.confirm()
      return nil
    }
    await engine?.confirmSendKey()
  }

  package func setMediaAuthenticator(_ authenticator: (any CallMediaAuthenticator)?) async {
    state.withLock { $0.authenticator = authenticator }
  }

  /// The signer and verifier that was set last.
  package var mediaAuthenticator: (any CallMediaAuthenticator)? { state.withLock { $0.authenticator } }

  package func disconnect() async {
    let engine = state.withLock { state -> CallEngine? in
      defer { state.phase = .over }
      guard case .joined(let engine) = state.phase else { return nil }
      return engine
    }
    await engine?.stop()
  }
}

/// Tells the session's events in the seam's words. A call that never connected ends with the error of `connect` alone.
private final class EventRelay: Sendable {
  private let onEvent: @Sendable (CallMediaEvent) -> Void
  private let hasConnected = Atomic(false)

  init(_ onEvent: @escaping @Sendable (CallMediaEvent) -> Void) { self.onEvent = onEvent }

  func take(_ event: CallEvent) {
    switch event {
    case .connected:
      hasConnected.store(true, ordering: .relaxed)
      onEvent(.connected)
    case .disconnected: if hasConnected.load(ordering: .relaxed) { onEvent(.disconnected) }
    case .participantConnected(let identity): onEvent(.participantConnected(identity: identity))
    case .participantDisconnected(let identity): onEvent(.participantDisconnected(identity: identity))
    case .participantUpdated(let identity, let audioMuted, let videoEnabled):
      onEvent(.participantUpdated(identity: identity, audioMuted: audioMuted, videoEnabled: videoEnabled))
    case .trackSubscribed(_, let identity, let kind, _):
      onEvent(.trackSubscribed(identity: identity, kind: kind == .audio ? .audio : .video))
    case .activeSpeakersChanged(let identities): onEvent(.activeSpeakersChanged(identities: identities))
    case .trackUnsubscribed, .keyFrameRequested, .decryptionFailing, .mutedByServer, .refusedByServer:
      break
    }
  }
}
