import CPalbeMallocCounter
import PalbeCrypto
import PalbeUnits
import Testing

@Suite("No allocation a message")
struct AllocationTests {
  /// Heap allocations of 100 runs of `body`, after 3 to warm up.
  func allocations(_ body: () throws -> Void) rethrows -> UInt64 {
    for _ in 0..<3 { try body() }
    let before = palbe_malloc_count()
    for _ in 0..<100 { try body() }
    return palbe_malloc_count() - before
  }

  @Test("The counter counts: an array is one allocation")
  func counter() {
    #expect(allocations { _ = [UInt8](repeating: 1, count: 64) } >= 100)
  }

  @Test(
    "AEADContext seals and opens without an allocation",
    arguments: [AEADContext.Algorithm.aes128GCM, .aes256GCM, .chaCha20Poly1305])
  func aead(_ algorithm: AEADContext.Algorithm) throws {
    let key = [UInt8](repeating: 1, count: algorithm.keyByteCount)
    let nonce = [UInt8](repeating: 2, count: 12)
    let trailer = [UInt8](repeating: 3, count: 4)
    var sealer = try AEADContext(algorithm, key: key.span, direction: .seal)
    var opener = try AEADContext(algorithm, key: key.span, direction: .open)
    var packet = [UInt8](repeating: 4, count: 1_100)
    let count = try allocations {
      var span = packet.mutableSpan
      try sealer.seal(in: &span, body: 12..<1_012, authenticating: 0..<12, nonce: nonce.span)
      try opener.open(in: &span, body: 12..<1_012, authenticating: 0..<12, nonce: nonce.span)
      try sealer.seal(in: &span, body: 12..<1_012, authenticating: trailer.span, nonce: nonce.span)
      try opener.open(in: &span, body: 12..<1_012, authenticating: trailer.span, nonce: nonce.span)
      try sealer.seal(in: &span, body: 12..<1_012, authenticating: 0..<12, trailer.span, nonce: nonce.span)
    }
    #expect(count == 0)
  }

  @Test("AEADContext refuses without an allocation")
  func refusal() throws {
    let key = [UInt8](repeating: 1, count: 16)
    let nonce = [UInt8](repeating: 2, count: 12)
    var opener = try AEADContext(.aes128GCM, key: key.span, direction: .open)
    var packet = [UInt8](repeating: 4, count: 1_100)
    var refused = 0
    let count = allocations {
      if Self.isRefused(&opener, &packet, nonce) { refused += 1 }
    }
    #expect(refused == 103)
    // The testing library notes every throw, which allocates; a throw costs nothing outside of tests.
    let ofThrowing = allocations { _ = Self.throwsAtOnce() }
    #expect(count == ofThrowing)
  }

  static func throwsAtOnce() -> Bool {
    do throws(CryptoError) {
      throw .authenticationFailure
    } catch {
      return error == .authenticationFailure
    }
  }

  static func isRefused(_ opener: inout AEADContext, _ packet: inout [UInt8], _ nonce: [UInt8]) -> Bool {
    var span = packet.mutableSpan
    do throws(CryptoError) {
      try opener.open(in: &span, body: 12..<1_012, authenticating: 0..<12, nonce: nonce.span)
      return false
    } catch {
      return error == .authenticationFailure
    }
  }

  @Test("An error fits where a typed throw keeps it in registers: 24 bytes")
  func errorSize() { #expect(MemoryLayout<CryptoError>.size <= 24) }

  @Test("AESCTRContext applies without an allocation")
  func counterMode() throws {
    let key = [UInt8](repeating: 1, count: 16)
    let counter = [UInt8](repeating: 2, count: 16)
    var context = try AESCTRContext(key: key.span)
    var packet = [UInt8](repeating: 4, count: 1_100)
    let count = allocations {
      var span = packet.mutableSpan
      context.apply(in: &span, range: 12..<1_012, counterBlock: counter.span)
    }
    #expect(count == 0)
  }

  @Test("HMACContext authenticates and checks without an allocation")
  func hmac() {
    expectNone(SHA1.self)
    expectNone(SHA256.self)
    expectNone(SHA384.self)
    expectNone(SHA512.self)
  }

  func expectNone<H: HashFunction>(_ hash: H.Type) {
    let message = [UInt8](repeating: 4, count: 1_100)
    let counter = [UInt8](repeating: 0, count: 4)
    var context = HMACContext<H>(key: message.span.extracting(first: 20))
    var tag = [UInt8](repeating: 0, count: 10)
    var valid = true
    let count = allocations {
      var output = tag.mutableSpan
      context.authenticate(message.span, counter.span, into: &output)
      if !context.isValid(tag.span, for: message.span, counter.span) { valid = false }
    }
    #expect(count == 0 && valid)
  }
}
