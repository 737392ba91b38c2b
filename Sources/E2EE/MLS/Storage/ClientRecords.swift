import PalbeCrypto
import PalbeMLSMessages
import PalbeWire

/// The client's identity and signing key. How it behaves is the application's to say at every start.
struct ClientRecord: StoredRecord {
  let cipherSuite: CipherSuite
  let credential: Credential
  let capabilities: Capabilities
  let sendsGREASE: Bool
  let signatureKey: Secret

  init(_ client: MLSClient) {
    cipherSuite = client.cipherSuite
    credential = client.credential
    capabilities = client.capabilities
    sendsGREASE = client.grease.isSent
    signatureKey = Secret(client.signatureKey.key.rawRepresentation)
  }

  init(from reader: inout ByteReader, schema: Int) throws(WireError) {
    cipherSuite = try CipherSuite(from: &reader)
    credential = try Credential(from: &reader)
    capabilities = try Capabilities(from: &reader)
    sendsGREASE = try reader.flag()
    signatureKey = try reader.secret()
  }

  func encode(into writer: inout RecordWriter) {
    writer.value(cipherSuite)
    writer.value(credential)
    writer.value(capabilities)
    writer.flag(sendsGREASE)
    writer.secret(signatureKey)
  }
}

struct KeyPackageRecord: StoredRecord {
  let keyPackage: KeyPackage
  let initKey: Secret
  let encryptionKey: Secret

  init(_ bundle: KeyPackageBundle) {
    keyPackage = bundle.keyPackage
    initKey = bundle.initKey
    encryptionKey = bundle.encryptionKey
  }

  init(from reader: inout ByteReader, schema: Int) throws(WireError) {
    keyPackage = try KeyPackage(from: &reader)
    initKey = try reader.secret()
    encryptionKey = try reader.secret()
  }

  func encode(into writer: inout RecordWriter) {
    writer.value(keyPackage)
    writer.secret(initKey)
    writer.secret(encryptionKey)
  }
}

struct PreSharedKeyRecord: StoredRecord {
  let id: [UInt8]
  let key: Secret

  init(_ key: PreSharedKey) {
    id = key.id
    self.key = key.secret
  }

  init(from reader: inout ByteReader, schema: Int) throws(WireError) {
    id = try reader.opaque()
    key = try reader.secret()
  }

  func encode(into writer: inout RecordWriter) {
    writer.plain.opaque(id)
    writer.secret(key)
  }
}

extension MLSClient {
  /// The client as a record, its signing key in it.
  public var stored: MLSRecord { ClientRecord(self).record }

  /// A client from its record. Throws `newerSchema`, `corrupted`, `inconsistent`.
  public convenience init(
    stored record: MLSRecord, configuration: MLSConfiguration = MLSConfiguration()
  ) throws(MLSStorageError) {
    try self.init(try ClientRecord(record), configuration: configuration)
  }

  convenience init(
    _ record: ClientRecord, configuration: MLSConfiguration
  ) throws(MLSStorageError) {
    do throws(MLSError) {
      let crypto = try SuiteCrypto(record.cipherSuite)
      let key = try SignatureKey(crypto.signatures, rawRepresentation: record.signatureKey.span)
      self.init(
        crypto: crypto, credential: record.credential, capabilities: record.capabilities,
        configuration: configuration, signatureKey: key,
        grease: record.sendsGREASE ? GREASE(signatureKey: key.publicKey) : .none)
    } catch { throw .inconsistent }
  }
}

extension KeyPackageBundle {
  /// The key package and its private keys as a record.
  public var stored: MLSRecord { KeyPackageRecord(self).record }

  /// A key package from its record. Throws `newerSchema`, `corrupted`, `inconsistent`.
  public convenience init(stored record: MLSRecord) throws(MLSStorageError) {
    let record = try KeyPackageRecord(record)
    let crypto: SuiteCrypto
    do { crypto = try SuiteCrypto(record.keyPackage.cipherSuite) } catch { throw .inconsistent }
    self.init(
      keyPackage: record.keyPackage, reference: crypto.reference(to: record.keyPackage),
      initKey: record.initKey, encryptionKey: record.encryptionKey)
  }
}

extension PreSharedKey {
  /// The key as a record.
  public var stored: MLSRecord { PreSharedKeyRecord(self).record }

  /// A key from its record. Throws `newerSchema`, `corrupted`.
  public convenience init(stored record: MLSRecord) throws(MLSStorageError) {
    let record = try PreSharedKeyRecord(record)
    self.init(id: record.id, key: record.key.key.copy())
  }
}

extension MLSTransaction {
  /// Stores the client.
  public mutating func write(_ client: MLSClient) { write(client.stored, .client) }
  /// Stores a key package.
  public mutating func write(_ bundle: KeyPackageBundle) {
    write(bundle.stored, .keyPackage(bundle.reference))
  }
  /// Stores a pre-shared key.
  public mutating func write(_ key: PreSharedKey) { write(key.stored, .preSharedKey(key.id)) }
}

extension MLSStorage {
  /// The stored client; nil where there is none.
  public func loadClient(
    configuration: MLSConfiguration = MLSConfiguration()
  ) throws(MLSStorageError) -> MLSClient? {
    guard let record = try read(.client) else { return nil }
    return try MLSClient(stored: record, configuration: configuration)
  }

  /// The key packages that were published and not used up.
  public func loadKeyPackages() throws(MLSStorageError) -> [KeyPackageBundle] {
    var result: [KeyPackageBundle] = []
    for key in try keys(under: .keyPackages) {
      if let record = try read(key) { result.append(try KeyPackageBundle(stored: record)) }
    }
    return result
  }

  /// The pre-shared keys.
  public func loadPreSharedKeys() throws(MLSStorageError) -> [PreSharedKey] {
    var result: [PreSharedKey] = []
    for key in try keys(under: .preSharedKeys) {
      if let record = try read(key) { result.append(try PreSharedKey(stored: record)) }
    }
    return result
  }
}
