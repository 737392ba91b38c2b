import PalbeBackendCore
import PalbeCrypto
import PalbeUnits
import PalbeWebServer
import PalbeWire

/// Addresses of a blob's bytes that say by themselves who gave them out: what may be done, with which blob, until when.
///
///     /v1/blob-bytes/blb_…?op=put&size=4096&exp=1767225600&sig=…
///
/// Whoever has one may use it; it holds for minutes.
package struct BlobURLs: Sendable {
  /// What may be done.
  package enum Operation: String, Sendable {
    case put, get
  }

  /// What an address says.
  package struct Grant: Hashable, Sendable {
    package var blob: BlobID
    package var operation: Operation
    /// Of the whole blob.
    package var byteCount: Int64
    /// In seconds since 1970.
    package var expiry: Int64
  }

  static let prefix = "/v1/blob-bytes/"
  private let key: [UInt8]
  private let origin: String

  /// - Parameters:
  ///   - key: 32 secret bytes.
  ///   - origin: what stands before the path, "https://chat.example.org"; empty for addresses relative to the server's own.
  package init(key: [UInt8], origin: String = "") {
    self.key = key
    self.origin = origin.last == "/" ? String(origin.dropLast()) : origin
  }

  /// The address of a grant.
  package func address(_ grant: Grant) -> String {
    let code = Base64.encode(code(grant), alphabet: .url, padded: false)
    return origin + Self.prefix + grant.blob.text
      + "?op=\(grant.operation.rawValue)&size=\(grant.byteCount)&exp=\(grant.expiry)&sig=\(code)"
  }

  /// What a request's address grants; nil when this server has not given it out. Whether it is over is the caller's to see.
  package func grant(of request: HTTPRequest) -> Grant? {
    guard request.path.hasPrefix(Self.prefix), let blob = BlobID(request.path.dropFirst(Self.prefix.count)),
      let operation = request.query("op").flatMap(Operation.init(rawValue:)),
      let count = request.query("size").flatMap({ Int64($0) }),
      let expiry = request.query("exp").flatMap({ Int64($0) }),
      let shown = request.query("sig").flatMap({ Base64.decode($0, alphabet: .url) })
    else { return nil }
    let grant = Grant(blob: blob, operation: operation, byteCount: count, expiry: expiry)
    return ConstantTime.equal(shown.span, code(grant).span) ? grant : nil
  }

  private func code(_ grant: Grant) -> [UInt8] {
    var bytes = Array("palbe blob address".utf8) + [grant.operation == .put ? 1 : 2]
    bytes += grant.blob.bytes
    for value in [grant.byteCount, grant.expiry] {
      bytes += (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
    }
    return HMAC<SHA256>.authenticationCode(for: bytes, using: key)
  }
}
