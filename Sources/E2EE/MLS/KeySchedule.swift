import PalbeMLSMessages
import PalbeUnits
import PalbeWire

/// The secrets of one epoch, RFC 9420 §8.
///
///     init_secret[n-1] ─▶ Extract ◀─ commit_secret
///                            │ Expand "joiner", GroupContext[n]
///                            ▼
///                       joiner_secret
///                            │
///        psk_secret ──▶  Extract ──▶ welcome_secret
///                            │ Expand "epoch", GroupContext[n]
///                            ▼
///                       epoch_secret ──▶ sender data, encryption, exporter, external, confirm,
///                            │            membership, resumption, authentication
///                            ▼
///                       init_secret[n]
struct EpochSecrets: Sendable {
  let senderData: Secret
  /// Nil once the secret tree is made of it: it would give every message key of the epoch again.
  private(set) var encryption: Secret?
  /// Nil once wiped.
  private(set) var exporter: Secret?
  let external: Secret
  let confirmationKey: Secret
  let membershipKey: Secret
  let resumption: Secret
  let authenticator: Secret
  let initSecret: Secret

  init(epochSecret: Secret, crypto: SuiteCrypto) {
    senderData = crypto.derive(epochSecret, label: "sender data")
    encryption = crypto.derive(epochSecret, label: "encryption")
    exporter = crypto.derive(epochSecret, label: "exporter")
    external = crypto.derive(epochSecret, label: "external")
    confirmationKey = crypto.derive(epochSecret, label: "confirm")
    membershipKey = crypto.derive(epochSecret, label: "membership")
    resumption = crypto.derive(epochSecret, label: "resumption")
    authenticator = crypto.derive(epochSecret, label: "authentication")
    initSecret = crypto.derive(epochSecret, label: "init")
  }

  /// Of an epoch whose secret tree is made.
  init(
    senderData: Secret, exporter: Secret?, external: Secret, confirmationKey: Secret, membershipKey: Secret,
    resumption: Secret, authenticator: Secret, initSecret: Secret
  ) {
    self.senderData = senderData
    encryption = nil
    self.exporter = exporter
    self.external = external
    self.confirmationKey = confirmationKey
    self.membershipKey = membershipKey
    self.resumption = resumption
    self.authenticator = authenticator
    self.initSecret = initSecret
  }

  /// Lets go of the encryption secret: only the secret tree's still unused parts stay.
  mutating func takeEncryption() -> Secret? {
    defer { encryption = nil }
    return encryption
  }

  /// Lets go of the exporter secret: its bytes are overwritten with the last reference.
  mutating func wipeExporter() { exporter = nil }

  /// `MLS-Exporter`, RFC 9420 §8.5; nil once wiped.
  func export(label: [UInt8], context: [UInt8], byteCount: Int, crypto: SuiteCrypto) -> Secret? {
    guard let exporter else { return nil }
    let secret = crypto.expand(exporter, label: label, context: [], byteCount: crypto.hashByteCount)
    return crypto.expand(secret, label: "exported", context: crypto.hash(context), byteCount: byteCount)
  }
}

/// From a commit to the epoch it starts.
struct KeySchedule: Sendable {
  let joinerSecret: Secret
  let welcomeSecret: Secret
  let secrets: EpochSecrets

  /// At a member: from the last epoch's init secret.
  init(
    initSecret: Secret, commitSecret: Secret, pskSecret: Secret, context: [UInt8], crypto: SuiteCrypto
  ) {
    let joiner = crypto.expand(
      crypto.extract(salt: initSecret, commitSecret), label: "joiner", context: context,
      byteCount: crypto.hashByteCount)
    self.init(joinerSecret: joiner, pskSecret: pskSecret, context: context, crypto: crypto)
  }

  /// At a new member: from the joiner secret of a Welcome.
  init(joinerSecret: Secret, pskSecret: Secret, context: [UInt8], crypto: SuiteCrypto) {
    self.joinerSecret = joinerSecret
    let member = crypto.extract(salt: joinerSecret, pskSecret)
    welcomeSecret = crypto.derive(member, label: "welcome")
    let epoch = crypto.expand(member, label: "epoch", context: context, byteCount: crypto.hashByteCount)
    secrets = EpochSecrets(epochSecret: epoch, crypto: crypto)
  }

  /// The welcome secret alone: the GroupInfo, and with it the context, is still encrypted.
  static func welcomeSecret(joinerSecret: Secret, pskSecret: Secret, crypto: SuiteCrypto) -> Secret {
    crypto.derive(crypto.extract(salt: joinerSecret, pskSecret), label: "welcome")
  }

  /// The key and nonce of a Welcome's GroupInfo.
  static func welcomeKey(_ welcomeSecret: Secret, crypto: SuiteCrypto) -> MessageKey {
    MessageKey(
      key: crypto.expand(welcomeSecret, label: "key", context: [], byteCount: crypto.keyByteCount),
      nonce: crypto.expand(welcomeSecret, label: "nonce", context: [], byteCount: crypto.nonceByteCount))
  }

  /// `psk_secret`, RFC 9420 §8.4; zeros for an empty list.
  static func pskSecret(_ keys: [(id: PreSharedKeyID, key: Secret)], crypto: SuiteCrypto) -> Secret {
    let zeros = Secret.zeros(crypto.hashByteCount)
    var secret = zeros
    for (index, item) in keys.enumerated() {
      var label = ByteWriter(capacity: 96)
      item.id.encode(into: &label)
      label.uint16(UInt16(truncatingIfNeeded: index))
      label.uint16(UInt16(truncatingIfNeeded: keys.count))
      let input = crypto.expand(
        crypto.extract(salt: zeros, item.key), label: "derived psk", context: label.bytes,
        byteCount: crypto.hashByteCount)
      secret = crypto.extract(salt: input, secret)
    }
    return secret
  }
}

extension GroupContext {
  /// The next epoch's context as far as it is known before a commit is applied. The number comes from whoever made
  /// the GroupInfo, so it may be the largest.
  func following() throws(MLSError) -> GroupContext {
    guard epoch < UInt64.max else { throw .commit(.epochsExhausted) }
    var next = self
    next.epoch += 1
    return next
  }
}

/// One AEAD key and its nonce.
struct MessageKey: Sendable {
  let key: Secret
  let nonce: Secret
}

/// Transcript hashes, RFC 9420 §8.2.
enum Transcript {
  static func confirmed(
    interimBefore: [UInt8], commit: AuthenticatedContent, crypto: SuiteCrypto
  ) -> [UInt8] {
    var input = ByteWriter(capacity: 2_048)
    input.append(interimBefore)
    commit.wireFormat.encode(into: &input)
    commit.content.encode(into: &input)
    input.opaque(commit.authentication.signature)
    return crypto.hash(input.bytes)
  }

  static func interim(confirmed: [UInt8], confirmationTag: [UInt8], crypto: SuiteCrypto) -> [UInt8] {
    var input = ByteWriter(capacity: 80)
    input.append(confirmed)
    input.opaque(confirmationTag)
    return crypto.hash(input.bytes)
  }
}
