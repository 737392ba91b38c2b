import CPalbeOpenSSL
import PalbeFrameEncryption

/// The limit: one keyed OpenSSL context a direction, and for each frame nothing but nonce, associated data, update,
/// final and tag, in place. No header, no counter to keep, no window.
struct RawFrames: ~Copyable {
  let shape: Slab.Shape
  var slab: [UInt8]
  let sealing: OpaquePointer
  let opening: OpaquePointer
  let aad = [UInt8](repeating: 9, count: 64)
  var nonce = [UInt8](repeating: 3, count: 12)
  var counter: UInt32 = 0

  init(_ suite: SFrameCipherSuite, _ shape: Slab.Shape) {
    self.shape = shape
    slab = shape.bytesOfSlab()
    let cipher = EVP_CIPHER_fetch(nil, suite == .aes128GCM ? "AES-128-GCM" : "AES-256-GCM", nil)
    let key = [UInt8](repeating: 7, count: suite.keyByteCount)
    sealing = EVP_CIPHER_CTX_new()
    opening = EVP_CIPHER_CTX_new()
    let ready =
      EVP_EncryptInit_ex2(sealing, cipher, key, nil, nil) == 1
      && EVP_DecryptInit_ex2(opening, cipher, key, nil, nil) == 1
    precondition(ready, "OpenSSL refuses \(suite)")
    EVP_CIPHER_free(cipher)
  }

  deinit {
    EVP_CIPHER_CTX_free(sealing)
    EVP_CIPHER_CTX_free(opening)
  }

  /// Seals the slab, then opens it, with `aadByteCount` bytes of associated data.
  mutating func turn(aadByteCount: Int) -> Times {
    var times = Times()
    let shape = shape
    let (sealing, opening) = (sealing, opening)
    let first = counter
    var count = first
    var good = true
    slab.withUnsafeMutableBufferPointer { slab in
      aad.withUnsafeBufferPointer { aad in
        nonce.withUnsafeMutableBufferPointer { nonce in
          let length = Int32(shape.bytes)
          var written: Int32 = 0
          func body(_ index: Int) -> UnsafeMutablePointer<UInt8> {
            slab.baseAddress! + index * shape.stride + FrameSealer.headroom + FramesBench.clear
          }
          func setNonce(_ value: UInt32) {
            nonce[8] = UInt8(truncatingIfNeeded: value >> 24)
            nonce[9] = UInt8(truncatingIfNeeded: value >> 16)
            nonce[10] = UInt8(truncatingIfNeeded: value >> 8)
            nonce[11] = UInt8(truncatingIfNeeded: value)
          }
          var began = nanoseconds()
          for index in 0..<shape.count {
            let body = body(index)
            setNonce(count)
            count &+= 1
            good =
              EVP_EncryptInit_ex2(sealing, nil, nil, nonce.baseAddress, nil) == 1
              && EVP_EncryptUpdate(sealing, nil, &written, aad.baseAddress, Int32(aadByteCount)) == 1
              && EVP_EncryptUpdate(sealing, body, &written, body, length) == 1
              && EVP_EncryptFinal_ex(sealing, body + shape.bytes, &written) == 1
              && EVP_CIPHER_CTX_ctrl(sealing, EVP_CTRL_AEAD_GET_TAG, 16, body + shape.bytes) == 1 && good
          }
          times.seal = nanoseconds() - began
          count = first
          began = nanoseconds()
          for index in 0..<shape.count {
            let body = body(index)
            setNonce(count)
            count &+= 1
            good =
              EVP_DecryptInit_ex2(opening, nil, nil, nonce.baseAddress, nil) == 1
              && EVP_DecryptUpdate(opening, nil, &written, aad.baseAddress, Int32(aadByteCount)) == 1
              && EVP_DecryptUpdate(opening, body, &written, body, length) == 1
              && EVP_CIPHER_CTX_ctrl(opening, EVP_CTRL_AEAD_SET_TAG, 16, body + shape.bytes) == 1
              && EVP_DecryptFinal_ex(opening, body + shape.bytes, &written) == 1 && good
          }
          times.open = nanoseconds() - began
        }
      }
    }
    counter = count
    precondition(good, "OpenSSL refused a frame")
    return times
  }
}
