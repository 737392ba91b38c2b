import PalbeMLSMessages
import PalbeUnits
import PalbeWire

/// Signatures and tags, RFC 9420 §6.1 and §6.2.
enum Framing {
  static func sign(
    _ content: FramedContent, as wireFormat: WireFormat, context: [UInt8], key: SignatureKey,
    crypto: SuiteCrypto
  ) throws(MLSError) -> [UInt8] {
    let signed = content.toBeSigned(wireFormat: wireFormat, context: context)
    return try crypto.sign(signed, label: "FramedContentTBS", key: key)
  }

  static func verify(
    _ message: AuthenticatedContent, context: [UInt8], key: [UInt8], crypto: SuiteCrypto
  ) throws(MLSError) {
    let signed = message.content.toBeSigned(wireFormat: message.wireFormat, context: context)
    let signature = message.authentication.signature
    guard crypto.isValid(signature, of: signed, label: "FramedContentTBS", key: key) else {
      throw .message(.invalidSignature)
    }
  }

  /// A PublicMessage of a member.
  static func publicMessage(
    _ message: AuthenticatedContent, context: [UInt8], membershipKey: Secret, crypto: SuiteCrypto
  ) -> PublicMessage {
    var result = PublicMessage(
      content: message.content, authentication: message.authentication, membershipTag: nil)
    result.membershipTag = crypto.mac(result.toBeMACed(context: context), key: membershipKey)
    return result
  }

  static func checkMembership(
    _ message: PublicMessage, context: [UInt8], membershipKey: Secret, crypto: SuiteCrypto
  ) throws(MLSError) {
    let covered = message.toBeMACed(context: context)
    guard let tag = message.membershipTag, crypto.isValidMAC(tag, of: covered, key: membershipKey) else {
      throw .message(.invalidMembershipTag)
    }
  }
}

/// The encryption keys of an epoch, RFC 9420 §6.3 and §9.
struct MessageKeys: Sendable {
  let senderData: Secret
  private(set) var tree: SecretTree

  init(senderData: Secret, encryption: Secret, size: TreeSize) {
    self.senderData = senderData
    tree = SecretTree(encryptionSecret: encryption, size: size)
  }

  init(senderData: Secret, tree: SecretTree) {
    self.senderData = senderData
    self.tree = tree
  }

  mutating func markStored() { tree.markStored() }

  func hasSkipped(before start: UInt64) -> Bool { tree.hasSkipped(before: start) }
  mutating func dropSkipped(before start: UInt64, now: UInt64) { tree.dropSkipped(before: start, now: now) }

  /// `SenderData`, RFC 9420 §6.3.2.
  struct SenderData: MLSCodable {
    let leaf: LeafIndex
    let generation: UInt32
    let reuseGuard: [UInt8]

    init(leaf: LeafIndex, generation: UInt32, reuseGuard: [UInt8]) {
      self.leaf = leaf
      self.generation = generation
      self.reuseGuard = reuseGuard
    }

    init(from reader: inout ByteReader) throws(WireError) {
      leaf = try LeafIndex(from: &reader)
      generation = try reader.uint32()
      reuseGuard = try reader.array(4)
    }

    func encode(into writer: inout ByteWriter) {
      leaf.encode(into: &writer)
      writer.uint32(generation)
      writer.append(reuseGuard)
    }
  }

  /// The key of a message's sender data, from the first bytes of its ciphertext.
  static func senderDataKey(_ secret: Secret, ciphertext: [UInt8], crypto: SuiteCrypto) -> MessageKey {
    let sample = Array(ciphertext.prefix(crypto.hashByteCount))
    return MessageKey(
      key: crypto.expand(secret, label: "key", context: sample, byteCount: crypto.keyByteCount),
      nonce: crypto.expand(secret, label: "nonce", context: sample, byteCount: crypto.nonceByteCount))
  }

  /// The ratchet's nonce, its first four bytes mixed with fresh ones: a restored backup repeats no nonce.
  private static func nonce(_ key: MessageKey, reuseGuard: [UInt8]) -> [UInt8] {
    var nonce = [UInt8](key.nonce.span)
    for index in 0..<4 { nonce[index] ^= reuseGuard[index] }
    return nonce
  }

  mutating func encrypt(
    _ message: AuthenticatedContent, from leaf: LeafIndex, padding: PaddingPolicy, crypto: SuiteCrypto,
    using random: inout RandomSource
  ) throws(MLSError) -> PrivateMessage {
    let content = message.content
    var plaintext = ByteWriter(capacity: 512)
    content.content.encodeBody(into: &plaintext)
    message.authentication.encode(into: &plaintext)
    let zeros = padding.padding(for: plaintext.bytes.count)
    plaintext.append([UInt8](repeating: 0, count: zeros))

    var result = PrivateMessage(
      groupID: content.groupID, epoch: content.epoch, contentType: content.content.type,
      authenticatedData: content.authenticatedData, encryptedSenderData: [], ciphertext: [])
    let (generation, key) = try tree.next(leaf, result.contentType, crypto: crypto)
    let reuseGuard = random.bytes(4)
    result.ciphertext = try crypto.seal(
      plaintext.bytes, key: key.key, nonce: Self.nonce(key, reuseGuard: reuseGuard),
      authenticating: result.contentAAD)
    let senderKey = Self.senderDataKey(senderData, ciphertext: result.ciphertext, crypto: crypto)
    let sender = SenderData(leaf: leaf, generation: generation, reuseGuard: reuseGuard)
    result.encryptedSenderData = try crypto.seal(
      sender.encoded(), key: senderKey.key, nonce: [UInt8](senderKey.nonce.span),
      authenticating: result.senderDataAAD)
    return result
  }

  /// Who sent a message. Any member can make this up: it selects a key and proves nothing.
  func sender(of message: PrivateMessage, crypto: SuiteCrypto) throws(MLSError) -> SenderData {
    let key = Self.senderDataKey(senderData, ciphertext: message.ciphertext, crypto: crypto)
    let bytes: [UInt8]
    do {
      bytes = try crypto.open(
        message.encryptedSenderData, key: key.key, nonce: [UInt8](key.nonce.span),
        authenticating: message.senderDataAAD)
    } catch { throw .message(.decryptionFailed) }
    do { return try SenderData(decoding: bytes) } catch { throw .malformed(error) }
  }

  /// A decrypted message whose key is still there.
  struct Opened {
    let message: AuthenticatedContent
    fileprivate let step: HashRatchet.Step
    fileprivate let leaf: LeafIndex
  }

  /// Decrypts; verify the signature, then `accept`.
  mutating func decrypt(
    _ message: PrivateMessage, from sender: SenderData, at time: UInt64 = 0, limits: RatchetLimits,
    crypto: SuiteCrypto
  ) throws(MLSError) -> Opened {
    let (key, step) = try tree.peek(
      sender.leaf, message.contentType, generation: sender.generation, at: time, limits: limits,
      crypto: crypto)
    let plaintext: [UInt8]
    do {
      plaintext = try crypto.open(
        message.ciphertext, key: key.key, nonce: Self.nonce(key, reuseGuard: sender.reuseGuard),
        authenticating: message.contentAAD)
    } catch { throw .message(.decryptionFailed) }
    let content: MessageContent
    let authentication: ContentAuthentication
    do {
      var reader = ByteReader(plaintext.span)
      content = try MessageContent(type: message.contentType, from: &reader)
      authentication = try ContentAuthentication(type: message.contentType, from: &reader)
      let padding = try reader.span(reader.remaining)
      for index in padding.indices where padding[index] != 0 { throw MLSError.message(.nonZeroPadding) }
    } catch let error as WireError { throw .malformed(error) } catch let error as MLSError {
      throw error
    } catch {
      throw .message(.decryptionFailed)
    }
    let framed = FramedContent(
      groupID: message.groupID, epoch: message.epoch, sender: .member(sender.leaf),
      authenticatedData: message.authenticatedData, content: content)
    return Opened(
      message: AuthenticatedContent(
        wireFormat: .privateMessage, content: framed, authentication: authentication),
      step: step, leaf: sender.leaf)
  }

  /// Erases the key of a message that proved genuine.
  mutating func accept(_ opened: Opened) {
    tree.accept(opened.step, opened.leaf, opened.message.content.content.type)
  }
}
