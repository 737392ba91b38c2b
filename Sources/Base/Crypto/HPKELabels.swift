import PalbeWire

extension HPKE {
  /// LabeledExtract and LabeledExpand (RFC 9180 §4) for one KDF under one suite identifier.
  struct LabeledKDF {
    let kdf: KDF
    let suiteID: [UInt8]

    /// Within a KEM: "KEM" and its number.
    init(_ kem: KEM) {
      kdf = kem.kdf
      var writer = ByteWriter()
      writer.append(utf8: "KEM")
      writer.uint16(kem.rawValue)
      suiteID = writer.bytes
    }

    /// Within the key schedule: "HPKE" and the three numbers (§5.1).
    init(_ suite: Ciphersuite) {
      kdf = suite.kdf
      var writer = ByteWriter()
      writer.append(utf8: "HPKE")
      writer.uint16(suite.kem.rawValue)
      writer.uint16(suite.kdf.rawValue)
      writer.uint16(suite.aead.rawValue)
      suiteID = writer.bytes
    }

    func extract(salt: Span<UInt8>, label: String, inputKeyMaterial: Span<UInt8>) -> SymmetricKey {
      var prefix = ByteWriter()
      prefix.append(utf8: "HPKE-v1")
      prefix.append(suiteID)
      prefix.append(utf8: label)
      return kdf.extract(salt: salt, prefix: prefix.bytes.span, inputKeyMaterial: inputKeyMaterial)
    }

    func expand(_ key: Span<UInt8>, label: String, info: Span<UInt8>, byteCount: Int) -> SymmetricKey {
      var labeled = ByteWriter()
      labeled.uint16(UInt16(truncatingIfNeeded: byteCount))
      labeled.append(utf8: "HPKE-v1")
      labeled.append(suiteID)
      labeled.append(utf8: label)
      labeled.append(info)
      return kdf.expand(key, info: labeled.bytes.span, byteCount: byteCount)
    }
  }
}

extension HPKE.KDF {
  /// Nh, bytes of an extracted key.
  var byteCount: Int {
    switch self {
    case .sha256: SHA256.byteCount
    case .sha384: SHA384.byteCount
    case .sha512: SHA512.byteCount
    }
  }

  fileprivate func extract(salt: Span<UInt8>, prefix: Span<UInt8>, inputKeyMaterial: Span<UInt8>)
    -> SymmetricKey
  {
    switch self {
    case .sha256: HKDF<SHA256>.extract(salt: salt, prefix: prefix, inputKeyMaterial: inputKeyMaterial)
    case .sha384: HKDF<SHA384>.extract(salt: salt, prefix: prefix, inputKeyMaterial: inputKeyMaterial)
    case .sha512: HKDF<SHA512>.extract(salt: salt, prefix: prefix, inputKeyMaterial: inputKeyMaterial)
    }
  }

  fileprivate func expand(_ key: Span<UInt8>, info: Span<UInt8>, byteCount: Int) -> SymmetricKey {
    switch self {
    case .sha256: HKDF<SHA256>.expand(pseudoRandomKey: key, info: info, outputByteCount: byteCount)
    case .sha384: HKDF<SHA384>.expand(pseudoRandomKey: key, info: info, outputByteCount: byteCount)
    case .sha512: HKDF<SHA512>.expand(pseudoRandomKey: key, info: info, outputByteCount: byteCount)
    }
  }
}
