import CPalbeMallocCounter
import CPalbeOpenSSL

/// The public-key operations, and for the exporter the hashes, that an operation of suite 1 cannot avoid.
struct RawWork {
  /// Ed25519 signatures, by the length of what is signed.
  var signatures: [Int] = []
  /// Ed25519 verifications, by the length of what is signed, with how many there are of each.
  var verifications: [(byteCount: Int, count: Int)] = []
  /// X25519 public keys of private ones.
  var publicKeys = 0
  /// X25519 shared secrets.
  var sharedSecrets = 0
  /// Compressions of SHA-256.
  var blocks = 0

  /// `count` messages sealed to X25519 keys: an ephemeral key and a shared secret each.
  mutating func seal(_ count: Int) {
    publicKeys += count
    sharedSecrets += count
  }
}

/// The floor: OpenSSL's own calls with keys, contexts and signatures made beforehand. Nothing is encoded, derived,
/// allocated or looked up beside them; only a public key needs a key object, since OpenSSL has no other call for it.
final class RawKeys {
  private let work: RawWork
  private let signing: OpaquePointer
  private let agreement: OpaquePointer
  private let verifying: [(context: OpaquePointer, message: [UInt8], signature: [UInt8], count: Int)]
  private let messages: [[UInt8]]
  private let seed = [UInt8](repeating: 7, count: 32)
  private var output = [UInt8](repeating: 0, count: 64)
  private var state = SHA256_CTX()
  private let block = [UInt8](repeating: 3, count: 64)

  init(_ work: RawWork) {
    self.work = work
    let signer = EVP_PKEY_new_raw_private_key_ex(nil, "ED25519", nil, seed, 32)
    func context(_ initialize: (OpaquePointer) -> Int32) -> OpaquePointer {
      guard let context = EVP_MD_CTX_new(), initialize(context) == 1 else {
        fatalError("OpenSSL has no Ed25519")
      }
      return context
    }
    let signing = context { EVP_DigestSignInit_ex($0, nil, nil, nil, nil, signer, nil) }
    self.signing = signing
    messages = work.signatures.map { [UInt8](repeating: 5, count: $0) }
    verifying = work.verifications.filter { $0.count > 0 }.map { item in
      let message = [UInt8](repeating: 6, count: item.byteCount)
      var signature = [UInt8](repeating: 0, count: 64)
      var count = 64
      precondition(EVP_DigestSign(signing, &signature, &count, message, message.count) == 1)
      return (
        context { EVP_DigestVerifyInit_ex($0, nil, nil, nil, nil, signer, nil) }, message, signature,
        item.count
      )
    }
    EVP_PKEY_free(signer)
    let own = EVP_PKEY_new_raw_private_key_ex(nil, "X25519", nil, seed, 32)
    let peer = EVP_PKEY_new_raw_private_key_ex(nil, "X25519", nil, block, 32)
    guard let agreement = EVP_PKEY_CTX_new_from_pkey(nil, own, nil), EVP_PKEY_derive_init(agreement) == 1,
      EVP_PKEY_derive_set_peer(agreement, peer) == 1
    else { fatalError("OpenSSL has no X25519") }
    self.agreement = agreement
    EVP_PKEY_free(own)
    EVP_PKEY_free(peer)
    palbe_sha256_init(&state)
  }

  deinit {
    EVP_MD_CTX_free(signing)
    EVP_PKEY_CTX_free(agreement)
    for item in verifying { EVP_MD_CTX_free(item.context) }
  }

  /// All of the work, once.
  func run() -> Sample {
    var sample = Sample()
    var good = true
    timed(&sample) {
      var count = 64
      for message in messages {
        good = EVP_DigestSign(signing, &output, &count, message, message.count) == 1 && good
      }
      for item in verifying {
        for _ in 0..<item.count {
          good =
            EVP_DigestVerify(item.context, item.signature, 64, item.message, item.message.count) == 1 && good
        }
      }
      for _ in 0..<work.publicKeys {
        let key = EVP_PKEY_new_raw_private_key_ex(nil, "X25519", nil, seed, 32)
        good = key != nil && good
        EVP_PKEY_free(key)
      }
      for _ in 0..<work.sharedSecrets {
        good = EVP_PKEY_derive(agreement, &output, &count) == 1 && good
      }
      for _ in 0..<work.blocks { palbe_sha256_update(&state, block, 64) }
    }
    precondition(good, "OpenSSL refused a raw call")
    return sample
  }
}
