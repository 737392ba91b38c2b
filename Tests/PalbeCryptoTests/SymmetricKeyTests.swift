import PalbeCrypto
import PalbeUnits
import Testing

@Suite("Symmetric keys")
struct SymmetricKeyTests {
  struct Refused: Error {}

  @Test("A key has the bytes it was made from, and a copy outlives it")
  func contents() {
    var random = RandomSource(seed: 3)
    for count in [0, 1, 7, 8, 9, 32, 100] {
      let key = SymmetricKey(byteCount: count, using: &random)
      #expect(key.byteCount == count && key.span.count == count)
      let copy = key.copy()
      expect(SymmetricKey.isEqual(key, copy))
      #expect(bytes(copy) == bytes(key))
      let longer = SymmetricKey(copying: bytes(key) + [0])
      expect(!SymmetricKey.isEqual(key, longer))
    }
  }

  @Test("A seed gives the same key, another seed another")
  func random() {
    var first = RandomSource(seed: 3)
    var same = RandomSource(seed: 3)
    var other = RandomSource(seed: 4)
    let key = SymmetricKey(byteCount: 32, using: &first)
    #expect(bytes(key) == bytes(SymmetricKey(byteCount: 32, using: &same)))
    #expect(bytes(key) != bytes(SymmetricKey(byteCount: 32, using: &other)))
  }

  @Test("An initializer that writes less makes a shorter key, one that throws makes none")
  func initializing() {
    let short = SymmetricKey(byteCount: 8) { $0.append(7) }
    #expect(bytes(short) == [7])
    #expect(throws: Refused.self) {
      _ = try SymmetricKey(byteCount: 8) { output throws(Refused) in
        output.append(1)
        throw Refused()
      }
    }
  }

  @Test("Constant-time comparison finds a difference in every byte, and in the length")
  func constantTime() {
    let left = (0..<40).map { UInt8($0) }
    expect(ConstantTime.equal(left.span, left.span))
    expect(ConstantTime.equal(Span(), Span()))
    expect(!ConstantTime.equal(left.span, left.span.extracting(first: 39)))
    for index in left.indices {
      var right = left
      right[index] ^= 0x80
      expect(!ConstantTime.equal(left.span, right.span))
    }
  }

  @Test("A key's memory holds nothing of it after its end")
  func wiped() throws {
    // glibc hands a freed block of this size straight back, with its own two words at the start. Where it
    // does not (another allocator, a sanitizer's quarantine), the block is another one and the test has
    // nothing to look at.
    let size = 512
    var seen = 0
    for _ in 0..<16 {
      let before = address(of: SymmetricKey(copying: [UInt8](repeating: 0xa5, count: size)))
      let block = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 1)
      defer { block.deallocate() }
      guard UInt(bitPattern: block) == before else { continue }
      seen += 1
      let rest = UnsafeRawBufferPointer(start: block, count: size).dropFirst(16)
      #expect(rest.allSatisfy { $0 == 0 })
    }
    withKnownIssue("the allocator gave other blocks", isIntermittent: true) { #expect(seen > 0) }
  }

  private func address(of key: consuming SymmetricKey) -> UInt {
    key.span.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) }
  }
}
