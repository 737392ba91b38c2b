import Foundation
import Glibc
import PalbeTestKit

/// A `palbe-server` process on loopback over a folder. It can be killed, and started again on its port.
package final class DeliveryServer {
  private let folder: String
  private let arguments: [String]
  private var process: ToolProcess
  package let port: UInt16
  package var address: String { "http://127.0.0.1:\(port)" }
  package var processIdentifier: Int32 { process.processIdentifier }

  /// - Parameters:
  ///   - folder: where its data is.
  ///   - arguments: more of `serve`.
  package init(folder: String, _ arguments: [String] = []) throws {
    self.folder = folder
    self.arguments = arguments
    (process, port) = try Self.start(folder, arguments, port: 0)
  }

  private static func start(
    _ folder: String, _ arguments: [String], port: UInt16
  ) throws -> (ToolProcess, UInt16) {
    let process = try ToolProcess(
      "palbe-server",
      [
        "serve", "--dev", "--host", "127.0.0.1", "--port", "\(port)", "--data", folder, "--reserved-space",
        "0",
      ]
        + arguments)
    do { return (process, try process.readPort()) } catch {
      throw ChatClient.Failure("palbe-server did not start: \(error) \(process.finish().errors)")
    }
  }

  /// A port that nobody listens on.
  package static func freePort() throws -> UInt16 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0
      }
    }
    guard isBound else { throw ChatClient.Failure("no port") }
    return UInt16(bigEndian: address.sin_port)
  }

  /// Ends it at once, and waits for that.
  package func kill() {
    process.terminate(with: SIGKILL)
    _ = process.finish()
  }

  package func startAgain() throws { (process, _) = try Self.start(folder, arguments, port: port) }

  /// Ends it as an operator does; its log.
  package func stop() -> ToolProcess.Result {
    process.terminate()
    return process.finish()
  }

  deinit { kill() }
}
