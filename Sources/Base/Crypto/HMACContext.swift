import CPalbeOpenSSL

/// HMAC (RFC 2104) keyed once and used for many messages, each without a heap allocation.
///
///     var context = HMACContext<SHA1>(key: key.span)
///     context.authenticate(packet, rolloverCounter, into: &tag)  // 10 bytes: HMAC-SHA1-80
@safe public struct HMACContext<H: HashFunction>: ~Copyable, @unchecked Sendable {
  /// Hash states after the padded key: inner, outer, and the one at work. On the heap: a move leaves no trace.
  private let states: UnsafeMutablePointer<H>
  private let digest: UnsafeMutableBufferPointer<UInt8>

  private static var inner: Int { 0 }
  private static var outer: Int { 1 }
  private static var work: Int { 2 }

  /// `key` has any length; one longer than the hash's block is hashed first (RFC 2104 §2).
  public init(key: Span<UInt8>) {
    let states = UnsafeMutablePointer<H>.allocate(capacity: 3)
    unsafe states.initialize(repeating: H(), count: 3)
    let digest = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: H.byteCount)
    unsafe digest.initialize(repeating: 0)

    if key.count > H.blockByteCount {
      unsafe states[Self.work].update(key)
      unsafe Self.finish(&states[Self.work], into: digest)
      unsafe Self.pad(Span(_unsafeElements: digest), inner: &states[Self.inner], outer: &states[Self.outer])
    } else {
      unsafe Self.pad(key, inner: &states[Self.inner], outer: &states[Self.outer])
    }
    unsafe self.states = unsafe states
    unsafe self.digest = unsafe digest
  }

  deinit {
    unsafe OPENSSL_cleanse(states, 3 * MemoryLayout<H>.stride)
    unsafe OPENSSL_cleanse(digest.baseAddress, digest.count)
    unsafe states.deallocate()
    unsafe digest.deallocate()
  }

  /// Writes the first `code.count` bytes of the message's code, at most `H.byteCount`.
  public mutating func authenticate(_ message: Span<UInt8>, into code: inout MutableSpan<UInt8>) {
    authenticate(message, Span(), Span(), into: &code)
  }

  /// The code of `first` followed by `second`.
  public mutating func authenticate(
    _ first: Span<UInt8>, _ second: Span<UInt8>, into code: inout MutableSpan<UInt8>
  ) {
    authenticate(first, second, Span(), into: &code)
  }

  /// The code of `first`, `second` and `third` in this order.
  public mutating func authenticate(
    _ first: Span<UInt8>, _ second: Span<UInt8>, _ third: Span<UInt8>, into code: inout MutableSpan<UInt8>
  ) {
    precondition(code.count <= H.byteCount, "the code is shorter than the tag asked for")
    compute(first, second, third)
    for index in code.indices { code[index] = unsafe digest[index] }
  }

  /// True when `code` is the start of the message's code. An empty code is never valid. Constant time.
  public mutating func isValid(
    _ code: Span<UInt8>, for first: Span<UInt8>, _ second: Span<UInt8> = Span()
  ) -> Bool {
    guard !code.isEmpty, code.count <= H.byteCount else { return false }
    compute(first, second)
    return unsafe ConstantTime.equal(code, Span(_unsafeElements: digest).extracting(first: code.count))
  }

  /// The code of the parts in this order, left in `digest`. `afterLastCode` puts the code left there first.
  mutating func compute(
    _ first: Span<UInt8>, _ second: Span<UInt8> = Span(), _ third: Span<UInt8> = Span(),
    afterLastCode: Bool = false
  ) {
    unsafe states[Self.work] = states[Self.inner]
    if afterLastCode { unsafe states[Self.work].update(Span(_unsafeElements: digest)) }
    if !first.isEmpty { unsafe states[Self.work].update(first) }
    if !second.isEmpty { unsafe states[Self.work].update(second) }
    if !third.isEmpty { unsafe states[Self.work].update(third) }
    unsafe Self.finish(&states[Self.work], into: digest)
    unsafe states[Self.work] = states[Self.outer]
    unsafe states[Self.work].update(Span(_unsafeElements: digest))
    unsafe Self.finish(&states[Self.work], into: digest)
  }

  /// Appends as much of the last computed code as `output` has room for.
  @_lifetime(output: copy output)
  mutating func appendCode(to output: inout OutputSpan<UInt8>) {
    for index in 0..<min(H.byteCount, output.freeCapacity) { output.append(unsafe digest[index]) }
  }

  /// XORs the last computed code into what `output` holds from `start` on, at most a code's length.
  @_lifetime(output: copy output)
  mutating func mixCode(into output: inout OutputSpan<UInt8>, from start: Int) {
    for index in start..<output.count { output[index] ^= unsafe digest[index - start] }
  }

  private static func finish(_ state: inout H, into digest: UnsafeMutableBufferPointer<UInt8>) {
    var output = unsafe OutputSpan(buffer: digest, initializedCount: 0)
    state.finish(into: &output)
    _ = unsafe output.finalize(for: digest)
  }

  private static func pad(_ key: Span<UInt8>, inner: inout H, outer: inout H) {
    inner.update(padded(key, with: 0x36).span)
    outer.update(padded(key, with: 0x5c).span)
  }

  private static func padded(_ key: Span<UInt8>, with byte: UInt8) -> SymmetricKey {
    SymmetricKey(byteCount: H.blockByteCount) { output in
      for index in 0..<H.blockByteCount { output.append(index < key.count ? key[index] ^ byte : byte) }
    }
  }
}
