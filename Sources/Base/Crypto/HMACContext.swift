import CPalbeOpenSSL

/// HMAC (RFC 2104) keyed once and used for many messages, each without a heap allocation.
///
///     var context = HMACContext<SHA1>(key: key.span)
///     context.authenticate(packet, rolloverCounter, into: &tag)  // 10 bytes: HMAC-SHA1-80
@safe public struct HMACContext<H: HashFunction>: ~Copyable, @unchecked Sendable {
  /// Hash states after the padded key: inner, outer, and the one at work. On the heap: a move leaves no trace. Behind
  /// them, in the same memory, the digest and a block for the padded key.
  private let states: UnsafeMutablePointer<H>
  private let digest: UnsafeMutableBufferPointer<UInt8>

  private static var inner: Int { 0 }
  private static var outer: Int { 1 }
  private static var work: Int { 2 }
  private static var size: Int { 3 * MemoryLayout<H>.stride + H.byteCount + H.blockByteCount }

  /// `key` has any length; one longer than the hash's block is hashed first (RFC 2104 §2).
  public init(key: Span<UInt8>) {
    let memory = UnsafeMutableRawPointer.allocate(
      byteCount: Self.size, alignment: MemoryLayout<H>.alignment)
    let states = unsafe memory.initializeMemory(as: H.self, repeating: H(), count: 3)
    let bytes = unsafe (memory + 3 * MemoryLayout<H>.stride).initializeMemory(
      as: UInt8.self, repeating: 0, count: H.byteCount + H.blockByteCount)
    let digest = unsafe UnsafeMutableBufferPointer(start: bytes, count: H.byteCount)
    let padded = unsafe UnsafeMutableBufferPointer(start: bytes + H.byteCount, count: H.blockByteCount)

    if key.count > H.blockByteCount {
      unsafe states[Self.work].update(key)
      unsafe Self.finish(&states[Self.work], into: digest)
      unsafe Self.pad(Span(_unsafeElements: digest), in: padded, &states[Self.inner], &states[Self.outer])
    } else {
      unsafe Self.pad(key, in: padded, &states[Self.inner], &states[Self.outer])
    }
    unsafe self.states = unsafe states
    unsafe self.digest = unsafe digest
  }

  deinit {
    unsafe OPENSSL_cleanse(states, Self.size)
    unsafe UnsafeMutableRawPointer(states).deallocate()
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

  private static func pad(
    _ key: Span<UInt8>, in padded: UnsafeMutableBufferPointer<UInt8>, _ inner: inout H, _ outer: inout H
  ) {
    unsafe padded.initialize(repeating: 0x36)
    for index in key.indices { unsafe padded[index] ^= key[index] }
    unsafe inner.update(Span(_unsafeElements: padded))
    for index in padded.indices { unsafe padded[index] ^= 0x36 ^ 0x5c }
    unsafe outer.update(Span(_unsafeElements: padded))
  }
}
