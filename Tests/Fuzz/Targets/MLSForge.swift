import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import PalbeWire

@testable import PalbeMLS

enum SymmetricKeyOfZeros {
  static func make() -> SymmetricKey { SymmetricKey(copying: [UInt8](repeating: 0, count: 32)) }
}

/// Genuine structures with fields changed as a program says, signed again by whoever the program says.
struct Forge {
  let world = MLSWorld.shared
  var choices: Choices
  var random = RandomSource(seed: 2)

  init(_ bytes: [UInt8]) { choices = Choices(bytes) }

  var crypto: SuiteCrypto { world.mallory.crypto }

  mutating func leafIndex() -> LeafIndex {
    LeafIndex(choices.pick([0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 1 << 20, 1 << 31, .max - 1, .max]))
  }

  /// Mostly Mallory's.
  mutating func signer() -> MLSClient {
    choices.below(4) == 0 ? choices.pick(world.clients + [world.outsider]) : world.clients[1]
  }

  func sign(_ bytes: [UInt8], _ label: String, by client: MLSClient) -> [UInt8] {
    (try? crypto.sign(bytes, label: label, key: client.signatureKey)) ?? []
  }

  // MARK: Parts

  mutating func extensions() -> [Extension] {
    var result: [Extension] = []
    for _ in 0..<choices.below(4) {
      switch choices.below(9) {
      case 0: result.append(Extension(type: .requiredCapabilities, data: RequiredCapabilities().encoded()))
      case 1:
        let required = RequiredCapabilities(
          extensions: [ExtensionType(rawValue: UInt16(choices.byte()))],
          proposals: [ProposalType(rawValue: UInt16(choices.byte()))],
          credentials: [CredentialType(rawValue: UInt16(choices.byte()))])
        result.append(Extension(type: .requiredCapabilities, data: required.encoded()))
      case 2:
        let sender = ExternalSender(
          signatureKey: world.outsider.signaturePublicKey, credential: world.outsider.credential)
        result.append(Extension(type: .externalSenders, data: ExternalSenderList([sender]).encoded()))
      case 3: result.append(Extension(type: .externalSenders, data: choices.bytes()))
      case 4: result.append(Extension(type: .requiredCapabilities, data: choices.bytes()))
      case 5: result.append(Extension(type: .ratchetTree, data: choices.bytes()))
      case 6: result.append(Extension(type: .externalPub, data: choices.bytes()))
      case 7: result.append(Extension(type: .applicationID, data: choices.bytes()))
      default:
        result.append(
          Extension(type: ExtensionType(rawValue: UInt16(choices.byte()) << 8 | 0x0a), data: choices.bytes()))
      }
    }
    return result
  }

  mutating func change(_ leaf: inout LeafNode) {
    switch choices.below(11) {
    case 0: leaf.encryptionKey = choices.change(leaf.encryptionKey)
    case 1: leaf.encryptionKey = world.honest.epoch.tree[LeafIndex(5)]?.encryptionKey ?? []
    case 2: leaf.signatureKey = choices.change(leaf.signatureKey)
    case 3: leaf.signatureKey = choices.pick(world.clients).signaturePublicKey
    case 4: leaf.credential = .x509(certificates: [choices.bytes(), choices.bytes()])
    case 5: leaf.credential = .basic(identity: choices.bytes())
    case 6:
      leaf.capabilities = Capabilities(
        versions: choices.flag() ? [] : [.mls10], cipherSuites: choices.flag() ? [] : [.x25519AES128GCM],
        credentials: choices.flag() ? [] : [.basic, .x509])
    case 7: leaf.extensions = extensions()
    case 8:
      leaf.source = choices.pick([
        .update, .commit(parentHash: choices.bytes()), .commit(parentHash: []),
        .keyPackage(MLSWorld.lifetime), .keyPackage(Lifetime(notBefore: .max, notAfter: 0)),
      ])
    case 9: leaf.signature = choices.change(leaf.signature)
    default: break
    }
  }

  /// A leaf signed at a position.
  mutating func signAgain(_ leaf: inout LeafNode, at index: LeafIndex) {
    guard choices.below(5) > 0 else { return }
    let by = signer()
    leaf.signature = sign(
      leaf.toBeSigned(groupID: world.mallory.groupID, leafIndex: index), "LeafNodeTBS", by: by)
  }

  mutating func keyPackage() -> KeyPackage {
    var result = world.outsidersBundle.keyPackage
    guard choices.below(3) > 0 else { return result }
    switch choices.below(7) {
    case 0: result.initKey = choices.change(result.initKey)
    case 1: result.initKey = result.leafNode.encryptionKey
    case 2: result.version = ProtocolVersion(rawValue: UInt16(choices.byte()))
    case 3: result.cipherSuite = CipherSuite(rawValue: UInt16(choices.below(9)))
    case 4: result.extensions = extensions()
    default: change(&result.leafNode)
    }
    let owner = choices.pick([world.outsider, world.clients[1], world.clients[3]])
    if choices.flag() { result.leafNode.signatureKey = owner.signaturePublicKey }
    if choices.below(5) > 0 {
      result.leafNode.signature = sign(
        result.leafNode.toBeSigned(groupID: [], leafIndex: LeafIndex(0)), "LeafNodeTBS", by: owner)
    }
    if choices.below(5) > 0 {
      result.signature = sign(result.toBeSigned, "KeyPackageTBS", by: owner)
    }
    return result
  }

  mutating func preSharedKeyID() -> PreSharedKeyID {
    let nonce = choices.below(4) == 0 ? choices.bytes() : random.bytes(32)
    if choices.flag() {
      return PreSharedKeyID(source: .external(id: choices.flag() ? [5] : choices.bytes()), nonce: nonce)
    }
    return PreSharedKeyID(
      source: .resumption(
        usage: choices.pick([.application, .reInit, .branch]),
        groupID: choices.flag() ? world.mallory.groupID : choices.bytes(),
        epoch: choices.flag() ? UInt64(choices.below(6)) : UInt64(choices.word()) << 32), nonce: nonce)
  }

  mutating func proposal() -> Proposal {
    switch choices.below(8) {
    case 0, 1: return .add(keyPackage())
    case 2:
      guard var leaf = world.mallory.epoch.tree[LeafIndex(1)] else { return .remove(LeafIndex(0)) }
      leaf.source = .update
      if choices.flag(), let keys = try? crypto.generateKeyPair(using: &random) {
        leaf.encryptionKey = keys.publicKey
      }
      change(&leaf)
      signAgain(&leaf, at: choices.below(4) == 0 ? leafIndex() : LeafIndex(1))
      return .update(leaf)
    case 3: return .remove(leafIndex())
    case 4: return .preSharedKey(preSharedKeyID())
    case 5:
      return .reInit(
        ReInit(
          groupID: choices.bytes(), version: ProtocolVersion(rawValue: UInt16(choices.below(3))),
          cipherSuite: CipherSuite(rawValue: UInt16(choices.below(9))), extensions: extensions()))
    case 6: return .externalInit(kemOutput: choices.change([UInt8](repeating: 9, count: 32)))
    default: return .groupContextExtensions(extensions())
    }
  }

  mutating func reference() -> ProposalRef {
    choices.below(3) == 0 ? ProposalRef(bytes: choices.bytes()) : choices.pick(world.references)
  }

  // MARK: Messages

  /// Frames a content with keys that a member holds; the program decides what is wrong with it.
  mutating func frame(
    _ content: FramedContent, _ tag: [UInt8]?, from group: borrowing MLSGroup, by client: MLSClient
  ) -> [UInt8] {
    let isPublic = choices.flag()
    let format: WireFormat = isPublic ? .publicMessage : .privateMessage
    var content = content
    switch choices.below(12) {
    case 0: content.sender = .member(leafIndex())
    case 1: content.sender = .external(index: UInt32(choices.below(3)))
    case 2: content.sender = choices.flag() ? .newMemberCommit : .newMemberProposal
    case 3: content.epoch = choices.pick([0, 1, content.epoch + 1, .max])
    case 4: content.groupID = choices.bytes()
    case 5: content.authenticatedData = choices.bytes()
    default: break
    }
    let signature =
      choices.below(6) == 0
      ? choices.bytes()
      : (try? Framing.sign(
        content, as: format, context: group.epoch.contextBytes, key: client.signatureKey, crypto: crypto))
        ?? []
    let message = AuthenticatedContent(
      wireFormat: format, content: content,
      authentication: ContentAuthentication(signature: signature, confirmationTag: tag))
    if isPublic {
      var result = Framing.publicMessage(
        message, context: group.epoch.contextBytes, membershipKey: group.epoch.secrets.membershipKey,
        crypto: crypto)
      if choices.below(6) == 0 { result.membershipTag = choices.bytes() }
      return MLSMessage.publicMessage(result).encoded()
    }
    return MLSMessage.privateMessage(seal(message, in: group)).encoded()
  }

  /// A PrivateMessage under the real keys of any generation of any sender, around any plaintext.
  mutating func seal(_ message: AuthenticatedContent, in group: borrowing MLSGroup) -> PrivateMessage {
    let content = message.content
    var writer = MLSBytes()
    writer.body(content.content)
    writer.authentication(message.authentication)
    var plaintext = writer.bytes
    switch choices.below(8) {
    case 0: plaintext = choices.change(plaintext)
    case 1: plaintext += [UInt8](repeating: 0, count: Int(choices.byte()))
    case 2: plaintext += choices.bytes()
    case 3: plaintext = Array(plaintext.dropLast(Int(choices.byte())))
    default: break
    }
    var leaf = LeafIndex(1)
    if case .member(let claimed) = content.sender { leaf = claimed }
    let generation = choices.below(3) == 0 ? choices.word() : UInt32(choices.byte()) * 5
    var result = PrivateMessage(
      groupID: content.groupID, epoch: content.epoch, contentType: content.content.type,
      authenticatedData: content.authenticatedData, encryptedSenderData: [], ciphertext: [])
    if choices.below(8) == 0 { result.contentType = choices.pick([.application, .proposal, .commit]) }
    var keys = group.epoch.keys
    let limits = RatchetLimits(maximumForwardDistance: 2_000, maximumSkippedKeys: 8)
    if let key = keys.key(of: leaf, result.contentType, generation, limits, crypto) {
      var nonce = [UInt8](key.nonce.span)
      let reuseGuard = random.bytes(4)
      for place in 0..<4 { nonce[place] ^= reuseGuard[place] }
      result.ciphertext =
        (try? crypto.seal(plaintext, key: key.key, nonce: nonce, authenticating: result.aad)) ?? []
      result.encryptedSenderData = senderData(leaf, generation, reuseGuard, result, group)
    } else {
      result.ciphertext = choices.bytes()
      result.encryptedSenderData = senderData(leaf, generation, [0, 0, 0, 0], result, group)
    }
    return result
  }

  private mutating func senderData(
    _ leaf: LeafIndex, _ generation: UInt32, _ reuseGuard: [UInt8], _ message: PrivateMessage,
    _ group: borrowing MLSGroup
  ) -> [UInt8] {
    let key = MessageKeys.senderDataKey(
      group.epoch.keys.senderData, ciphertext: message.ciphertext, crypto: crypto)
    var plaintext = MessageKeys.SenderData(leaf: leaf, generation: generation, reuseGuard: reuseGuard)
      .encoded()
    if choices.below(10) == 0 { plaintext = choices.change(plaintext) }
    return
      (try? crypto.seal(
        plaintext, key: key.key, nonce: [UInt8](key.nonce.span), authenticating: message.senderAAD)) ?? []
  }
}

extension MessageKeys {
  /// The key of any generation, as every member can derive it.
  mutating func key(
    of leaf: LeafIndex, _ type: ContentType, _ generation: UInt32, _ limits: RatchetLimits,
    _ crypto: SuiteCrypto
  ) -> MessageKey? {
    var tree = tree
    return try? tree.peek(leaf, type, generation: generation, limits: limits, crypto: crypto).key
  }
}
