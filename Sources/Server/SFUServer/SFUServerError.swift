import PalbeEventLoop
import PalbeUnits
import PalbeWebServer

/// Why the server could not start; its description is the one line a person needs.
public enum SFUServerError: Error, Equatable, Sendable, CustomStringConvertible {
  /// Another program listens on the TCP port.
  case signalingPortInUse(UInt16)
  /// Another program listens on the UDP port.
  case mediaPortInUse(UInt16)
  /// Another program listens on the TCP port for media.
  case streamPortInUse(UInt16)
  /// Another program listens on the metrics' port.
  case metricsPortInUse(UInt16)
  /// A port needs a privilege that the process lacks.
  case permissionDenied(UInt16)
  /// The host has no such address.
  case addressNotAvailable(String)
  /// The workers' ports would go past 65535.
  case tooManyWorkers(count: Int, firstPort: UInt16)
  /// The audit log's file cannot be written.
  case auditLog(path: String, reason: String)
  /// The certificate of the signaling port cannot be used, with the reason.
  case certificate(String)
  /// Events cannot be posted as configured, with the reason.
  case webhooks(String)
  /// No memory, thread, descriptor or certificate, with the system's words.
  case system(String)

  /// One line for a person.
  public var description: String {
    switch self {
    case .signalingPortInUse(let port): "signaling port \(port) (TCP) is in use; choose another with --port"
    case .mediaPortInUse(let port): "media port \(port) (UDP) is in use; choose another with --udp-port"
    case .streamPortInUse(let port): "media port \(port) (TCP) is in use; choose another with --tcp-port"
    case .metricsPortInUse(let port):
      "metrics port \(port) (TCP) is in use; choose another with --prometheus-port"
    case .permissionDenied(let port): "no permission to use port \(port)"
    case .addressNotAvailable(let host): "this machine has no address \(host)"
    case .tooManyWorkers(let count, let port):
      "\(count) workers from port \(port) on need ports above 65535; choose another port"
    case .auditLog(let path, let reason): "cannot write the audit log '\(path)': \(reason)"
    case .certificate(let reason): "TLS: \(reason)"
    case .webhooks(let reason): "webhooks: \(reason)"
    case .system(let reason): "cannot start: \(reason)"
    }
  }

  init(_ error: WebServerError, host: String) {
    switch error {
    case .portInUse(let port): self = .signalingPortInUse(port)
    case .permissionDenied(let port): self = .permissionDenied(port)
    case .addressNotAvailable: self = .addressNotAvailable(host)
    case .noResources: self = .system(error.description)
    case .certificate(let error): self = .certificate(error.description)
    }
  }

  init(_ error: SocketError, at address: SocketAddress) {
    switch error {
    case .portInUse(let port):
      self = address.transport == .tcp ? .streamPortInUse(port) : .mediaPortInUse(port)
    case .permissionDenied(let port): self = .permissionDenied(port)
    case .addressNotAvailable: self = .addressNotAvailable(address.host)
    case .system(let error): self = .system(error.description)
    }
  }
}
