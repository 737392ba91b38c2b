import Foundation
import Synchronization

/// Holds the one runtime of a process, made when it is first needed.
package final class PalbaseHost: Sendable {
  private struct State {
    var runtime: PalbaseRuntime?
    var group: String?
    var onError: (@Sendable (BackendError) -> Void)?
    /// What was reported last, so that each use of a missing configuration does not report it anew, and that a
    /// handler which comes later hears of it.
    var lastFault: BackendError?
  }
  private let state = Mutex(State())
  private let surroundings: Settings.Surroundings
  private let time: Timebase
  private let transport: @Sendable (Settings) -> any HTTPTransport
  private let connector: @Sendable (Settings) -> any RealtimeConnector

  /// The process's.
  package static let shared = PalbaseHost(
    surroundings: .current, time: .system,
    transport: { CurlTransport(trustedCertificateFile: $0.trustedCertificateFile) },
    connector: { WebSocketConnector(trustedCertificateFile: $0.trustedCertificateFile) })

  /// For tests: another process.
  package init(
    surroundings: Settings.Surroundings, time: Timebase,
    transport: @escaping @Sendable (Settings) -> any HTTPTransport,
    connector: @escaping @Sendable (Settings) -> any RealtimeConnector
  ) {
    self.surroundings = surroundings
    self.time = time
    self.transport = transport
    self.connector = connector
  }

  /// The runtime. A configuration that is missing or wrong is a typed error, and looked for again next time.
  package func runtime() throws(BackendError) -> PalbaseRuntime {
    let (result, news, handler) = state.withLock {
      state -> (Result<PalbaseRuntime, BackendError>, BackendError?, (@Sendable (BackendError) -> Void)?) in
      if let runtime = state.runtime { return (.success(runtime), nil, nil) }
      do throws(BackendError) {
        let runtime = try make(group: state.group)
        state.runtime = runtime
        state.lastFault = nil
        return (.success(runtime), nil, nil)
      } catch {
        let isNews = state.lastFault != error
        state.lastFault = error
        return (.failure(error), isNews ? error : nil, state.onError)
      }
    }
    if let news {
      SDKLog.note("\(news) \(news.advice)")
      handler?(news)
    }
    return try result.get()
  }

  private func make(group: String?) throws(BackendError) -> PalbaseRuntime {
    let settings: Settings
    do throws(ConfigurationFault) { settings = try Settings.load(surroundings) } catch {
      throw .notConfigured(error)
    }
    return try PalbaseRuntime(
      settings: settings, group: group, time: time, transport: transport(settings),
      connector: connector(settings))
  }

  /// The runtime if it can be made; a failure is reported, not thrown.
  package func runtimeIfConfigured() -> PalbaseRuntime? { try? runtime() }

  /// Tells of a failure that no caller waits for.
  package func report(_ error: BackendError) {
    let handler = state.withLock { $0.onError }
    SDKLog.note("\(error.code): \(error.message)")
    handler?(error)
  }

  /// Shares the stores with the other processes of an app group. Counts before the first use only.
  package func configure(group: String) {
    let isLate = state.withLock { state in
      guard state.runtime == nil else { return state.group != group }
      state.group = group
      return false
    }
    if isLate {
      SDKLog.note("pb.configure came after the first use; the stores stay where they are")
    } else {
      _ = runtimeIfConfigured()
    }
  }

  /// Who hears of failures that no caller waits for.
  package func configure(onError: @escaping @Sendable (BackendError) -> Void) {
    let missed = state.withLock { state in
      state.onError = onError
      return state.lastFault
    }
    if let missed { onError(missed) }
  }
}
