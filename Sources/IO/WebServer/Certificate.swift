import CPalbeWebSockets
import Glibc

/// Where a server's certificate and its private key are: PEM files, the certificate's issuers after it.
public struct CertificateFiles: Hashable, Sendable {
  /// The path of the certificate and the chain above it.
  public var certificate: String
  /// The path of the private key, not encrypted.
  public var key: String

  /// Two paths.
  public init(certificate: String, key: String) {
    self.certificate = certificate
    self.key = key
  }

  /// Throws unless both can be read and belong together.
  public func check() throws(CertificateError) { _ = try read() }

  /// Reads both and checks that they belong together.
  func read() throws(CertificateError) -> CertificatePair {
    let pair = CertificatePair(
      certificate: try Self.bytes(of: certificate), key: try Self.bytes(of: key))
    switch pair.install(into: nil) {
    case 0: return pair
    case 1: throw .notACertificate(path: certificate)
    case 2: throw .notAKey(path: key)
    default: throw .keyDoesNotMatch(certificate: certificate, key: key)
    }
  }

  /// Files of certificates are short.
  private static let byteLimit = 1 << 20

  private static func bytes(of path: String) throws(CertificateError) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw .unreadable(path: path, reason: String(cString: strerror(errno))) }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: byteLimit + 1)
    var filled = 0
    while filled < bytes.count {
      let count = bytes.withUnsafeMutableBytes { buffer in
        Glibc.read(descriptor, buffer.baseAddress?.advanced(by: filled), buffer.count - filled)
      }
      guard count >= 0 else { throw .unreadable(path: path, reason: String(cString: strerror(errno))) }
      if count == 0 { break }
      filled += count
    }
    guard filled <= byteLimit else { throw .unreadable(path: path, reason: "longer than 1 MiB") }
    let content = Array(bytes[..<filled])
    erase(&bytes)
    return content
  }
}

/// Why a certificate or its key cannot be used.
public enum CertificateError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The file is not there or must not be read, with the system's words.
  case unreadable(path: String, reason: String)
  /// The file holds no certificate in PEM, or one of its chain is broken.
  case notACertificate(path: String)
  /// The file holds no private key in PEM, or an encrypted one.
  case notAKey(path: String)
  /// The key is that of another certificate.
  case keyDoesNotMatch(certificate: String, key: String)

  /// One line for a person.
  public var description: String {
    switch self {
    case .unreadable(let path, let reason): "cannot read '\(path)': \(reason)"
    case .notACertificate(let path): "'\(path)' holds no certificate in PEM"
    case .notAKey(let path): "'\(path)' holds no private key in PEM without a passphrase"
    case .keyDoesNotMatch(let certificate, let key):
      "the key in '\(key)' does not belong to the certificate in '\(certificate)'"
    }
  }
}

/// A certificate's and a key's bytes, the latter erased at the end.
final class CertificatePair: Sendable {
  private let certificate: [UInt8]
  nonisolated(unsafe) private var key: [UInt8]

  init(certificate: [UInt8], key: [UInt8]) {
    self.certificate = certificate
    self.key = key
  }

  deinit { erase(&key) }

  /// Makes the library's TLS context use them; nil only checks. Zero when that worked, else what is wrong: 1 the
  /// certificate, 2 the key, 3 that they do not belong together.
  func install(into context: UnsafeMutableRawPointer?) -> Int32 {
    palbe_tls_install(
      OpaquePointer(context), certificate, Int32(clamping: certificate.count), key, Int32(clamping: key.count)
    )
  }

  /// When the certificate ends, in seconds since 1970; nil when it does not say.
  var expiry: Int64? {
    let seconds = palbe_tls_expiry(certificate, Int32(clamping: certificate.count))
    return seconds == 0 ? nil : seconds
  }
}

private func erase(_ bytes: inout [UInt8]) {
  bytes.withUnsafeMutableBytes { buffer in
    if let base = buffer.baseAddress { explicit_bzero(base, buffer.count) }
  }
}
