package import PalbeCallCore
package import PalbeFrameEncryption

/// A call on real sockets, threads and codecs around a `CallSession`.
///
///     var configuration = CallEngine.Configuration(edgeURL: url, token: token, encryption: .sframe)
///     configuration.audioSource = source
///     configuration.firstKey = key
///     let engine = CallEngine(configuration, hooks: hooks)
///     try await engine.start()                 // media flows
///     …
///     await engine.stop()
package final class CallEngine: Sendable {
  private let configuration: Configuration
  private let hooks: Hooks

  /// An engine that has not begun: no thread and no socket.
  package init(_ configuration: Configuration, hooks: Hooks = Hooks()) {
    self.configuration = configuration
    self.hooks = hooks
  }

  /// Joins the room and returns when media flows. After a failure nothing is left running.
  package func start() async throws(CallEngineError) { throw .notConnected }

  /// Makes a 32-byte call key readable at once, and sends under it as `sending` says.
  package func installKey(
    _ key: [UInt8], sending: PalbeFrameEncryption.SendSwitch
  ) async throws(CallEngineError) { throw .notConnected }

  /// Everybody has the newest key: send under it.
  package func confirmSendKey() async {}

  /// Stops or resumes sending a track.
  package func setMuted(_ track: LocalTrack, _ muted: Bool) async throws(CallEngineError) {
    throw .notConnected
  }

  /// The counters now, or the last ones when the call is over; nil before it began.
  package func statistics() async -> CallStatistics? { nil }

  /// Leaves the room and returns when every thread has ended. Safe to call more than once.
  package func stop() async {}
}
