import CPalbeCurl
import Glibc
import PalbeWebTokens
import PalbeWire
import Synchronization

/// Where an identity provider's key set is: a file, or an https address (http on this machine).
package enum KeySource: Hashable, Sendable {
  case file(String)
  /// - Parameter authorities: a PEM file of certificate authorities to trust instead of the system's.
  case url(String, authorities: String? = nil)

  /// Nil for what is neither a path nor such an address.
  package init?(_ text: String, authorities: String? = nil) {
    let lower = text.lowercased()
    guard lower.contains("://") else {
      guard !text.isEmpty, !text.utf8.contains(0) else { return nil }
      self = .file(text)
      return
    }
    let isLocal = ["http://127.0.0.1", "http://[::1]", "http://localhost"].contains { host in
      lower.hasPrefix(host) && [":", "/"].contains(lower.dropFirst(host.count).prefix(1))
    }
    guard lower.hasPrefix("https://") && lower.utf8.count > 8 || isLocal, text.utf8.count <= 2_048,
      text.utf8.allSatisfy({ $0 > 32 && $0 < 127 })
    else { return nil }
    self = .url(text, authorities: authorities)
  }

  /// Why there is no key set, in words for a person.
  struct Failure: Error, Hashable { let reason: String }

  /// Reads or asks for it; may take as long as `timeout`, in seconds.
  /// - Parameter isStopping: ends the wait.
  func load(timeout: Int = 10, isStopping: @escaping @Sendable () -> Bool) throws(Failure) -> KeySet {
    let bytes: [UInt8]
    switch self {
    case .file(let path): bytes = try Self.read(path)
    case .url(let url, let authorities):
      bytes = try Transfer(isStopping: isStopping).get(url, authorities: authorities, timeout: timeout)
    }
    do throws(JSONError) { return try KeySet(json: bytes) } catch {
      throw Failure(reason: "not a JSON web key set")
    }
  }

  private static func read(_ path: String) throws(Failure) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw Failure(reason: String(cString: strerror(errno))) }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = Glibc.read(descriptor, &piece, piece.count)
      guard count >= 0 else { throw Failure(reason: String(cString: strerror(errno))) }
      if count == 0 { return bytes }
      bytes += piece[..<count]
      guard bytes.count <= KeySet.byteLimit else { throw Failure(reason: "longer than a key set may be") }
    }
  }
}

/// One GET, whole in memory and bounded, on the thread that asks.
private final class Transfer {
  private static let isInitialized = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  private let isStopping: () -> Bool
  private var body: [UInt8] = []

  init(isStopping: @escaping () -> Bool) { self.isStopping = isStopping }

  func get(_ url: String, authorities: String?, timeout: Int) throws(KeySource.Failure) -> [UInt8] {
    guard Self.isInitialized, let easy = curl_easy_init() else { throw .init(reason: "no memory") }
    defer { curl_easy_cleanup(easy) }
    let own = Unmanaged.passUnretained(self).toOpaque()
    palbe_curl_set_text(easy, CURLOPT_URL, url)
    palbe_curl_set_text(easy, CURLOPT_PROTOCOLS_STR, "http,https")
    palbe_curl_set_number(easy, CURLOPT_NOSIGNAL, 1)
    palbe_curl_set_number(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    palbe_curl_set_number(easy, CURLOPT_TIMEOUT, timeout)
    if let authorities { palbe_curl_set_text(easy, CURLOPT_CAINFO, authorities) }
    palbe_curl_set_bytes(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, user in
      let transfer = Unmanaged<Transfer>.fromOpaque(user!).takeUnretainedValue()
      return transfer.receive(UnsafeRawBufferPointer(start: bytes, count: size * count))
    }
    palbe_curl_set_pointer(easy, CURLOPT_WRITEDATA, own)
    palbe_curl_set_number(easy, CURLOPT_NOPROGRESS, 0)
    palbe_curl_set_progress(easy) { user, _, _, _, _ in
      Unmanaged<Transfer>.fromOpaque(user!).takeUnretainedValue().isStopping() ? 1 : 0
    }
    palbe_curl_set_pointer(easy, CURLOPT_XFERINFODATA, own)
    let result = curl_easy_perform(easy)
    guard result == CURLE_OK else { throw .init(reason: String(cString: curl_easy_strerror(result))) }
    // A redirection too: the address in the configuration is the one that is trusted.
    let status = palbe_curl_get_number(easy, CURLINFO_RESPONSE_CODE)
    guard status == 200 else { throw .init(reason: "status \(status)") }
    return body
  }

  /// Fewer than came ends the transfer.
  private func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard body.count + bytes.count <= KeySet.byteLimit else { return 0 }
    body.append(contentsOf: bytes)
    return bytes.count
  }
}
