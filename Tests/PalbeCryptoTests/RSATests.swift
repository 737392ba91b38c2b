import PalbeCrypto
import Testing

/// RFC 7515 A.2 and a provider's PSS signatures are in PalbeWebTokensTests.
@Suite("RSA")
struct RSATests {
  private func error(_ modulus: [UInt8], _ exponent: [UInt8]) -> CryptoError? {
    do throws(CryptoError) { _ = try RSA.Signing.PublicKey(modulus: modulus, exponent: exponent) } catch {
      return error
    }
    return nil
  }

  @Test("RFC 8017 §3.1: numbers that are no key of 2,048 to 8,192 bits")
  func keys() {
    let modulus = [0x80] + [UInt8](repeating: 1, count: 255)
    #expect(error(modulus, [1, 0, 1]) == nil && error(modulus, [3]) == nil)
    for (modulus, exponent) in [
      ([], [3]), (modulus, []), (modulus, [1]), (modulus, [2]), (modulus, [0, 3]),
      (modulus, [1, 0, 0, 0, 1]),
      ([0] + modulus, [3]), ([0x7f] + modulus.dropFirst(), [3]), (modulus.dropLast() + [2], [3]),
      ([UInt8](repeating: 255, count: 1_025), [3]),
    ] as [([UInt8], [UInt8])] {
      #expect(error(modulus, exponent) == .invalidEncoding)
    }
  }

  @Test("A signature of another length or of zeros is none, under either padding")
  func lengths() throws {
    let key = try RSA.Signing.PublicKey(
      modulus: [0x80] + [UInt8](repeating: 1, count: 255), exponent: [1, 0, 1])
    for count in [0, 1, 255, 256, 257] {
      let signature = [UInt8](repeating: 0, count: count)
      for padding in [RSA.Signing.Padding.pkcs1v15, .pss] {
        expect(!key.isValidSignature(signature.span, for: signature.span, padding: padding))
      }
    }
  }
}
