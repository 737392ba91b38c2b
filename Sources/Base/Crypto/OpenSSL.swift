import CPalbeOpenSSL

/// Algorithms fetched once for the process. A fetch takes a lock and allocates; a context made from these
/// does not fetch.
enum Fetched {
  nonisolated(unsafe) static let aes128GCM = unsafe cipher("AES-128-GCM")
  nonisolated(unsafe) static let aes256GCM = unsafe cipher("AES-256-GCM")
  nonisolated(unsafe) static let chaCha20Poly1305 = unsafe cipher("ChaCha20-Poly1305")
  nonisolated(unsafe) static let aes128CTR = unsafe cipher("AES-128-CTR")
  nonisolated(unsafe) static let aes256CTR = unsafe cipher("AES-256-CTR")

  private static func cipher(_ name: StaticString) -> OpaquePointer {
    let fetched = name.withUTF8Buffer { utf8 in
      unsafe utf8.withMemoryRebound(to: CChar.self) { unsafe EVP_CIPHER_fetch(nil, $0.baseAddress, nil) }
    }
    guard let fetched = unsafe fetched else { fatalError("OpenSSL has no \(name)") }
    return unsafe fetched
  }
}

extension CryptoError {
  /// The oldest error in OpenSSL's queue of this thread; empties the queue, so that no later call finds it.
  static func fromOpenSSL() -> CryptoError {
    let code = ERR_get_error()
    ERR_clear_error()
    return .openSSL(code: code)
  }
}

/// Borrows a pointer to a span's first byte; never nil, also for an empty span.
@inline(__always)
func withBytes<Result: ~Copyable, E: Error>(
  _ span: Span<UInt8>, _ body: (UnsafePointer<UInt8>, Int) throws(E) -> Result
) throws(E) -> Result {
  try unsafe span.withUnsafeBufferPointer { bytes throws(E) in
    if let base = bytes.baseAddress { return try unsafe body(base, bytes.count) }
    var nothing: UInt8 = 0
    return try unsafe withUnsafePointer(to: &nothing) { pointer throws(E) in try unsafe body(pointer, 0) }
  }
}
