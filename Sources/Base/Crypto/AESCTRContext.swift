import CPalbeOpenSSL

/// AES in counter mode (NIST SP 800-38A §6.5) with one key, keyed once. A message costs no allocation and is not
/// authenticated.
///
///     var context = try AESCTRContext(key: key.span)
///     context.apply(in: &packet, range: 12..<112, counterBlock: initial.span)
@safe public struct AESCTRContext: ~Copyable, @unchecked Sendable {
  private let context: OpaquePointer

  /// A key of 16 or 32 bytes; throws `wrongLength` for another.
  public init(key: Span<UInt8>) throws(CryptoError) {
    let cipher: OpaquePointer
    switch key.count {
    case 16: unsafe cipher = Fetched.aes128CTR
    case 32: unsafe cipher = Fetched.aes256CTR
    default: throw .wrongLength(expected: 16, got: key.count)
    }
    let keyed = try unsafe makeCipherContext(cipher, key: key, encrypting: true)
    unsafe context = keyed
  }

  deinit { unsafe EVP_CIPHER_CTX_free(context) }

  /// XORs the key stream that starts at `counterBlock` (16 bytes, counted up as one big-endian number) into
  /// `buffer[range]`. The same call encrypts and decrypts. A range outside the buffer is a programming error
  /// and traps.
  public mutating func apply(
    in buffer: inout MutableSpan<UInt8>, range: Range<Int>, counterBlock: Span<UInt8>
  ) {
    precondition(counterBlock.count == 16, "a counter block has 16 bytes")
    precondition(range.lowerBound >= 0 && range.upperBound <= buffer.count, "range outside the buffer")
    precondition(range.count <= Int(Int32.max), "OpenSSL counts in Int32")
    guard !range.isEmpty else { return }
    let context = unsafe context
    let applied = unsafe buffer.withUnsafeMutableBufferPointer { bytes in
      unsafe withBytes(counterBlock) { counter, _ in
        let start = unsafe bytes.baseAddress! + range.lowerBound
        var written: Int32 = 0
        return unsafe EVP_EncryptInit_ex2(context, nil, nil, counter, nil) == 1
          && EVP_EncryptUpdate(context, start, &written, start, Int32(range.count)) == 1
      }
    }
    precondition(applied, "AES-CTR cannot fail once keyed")
  }
}
