public import PalbeCrypto
public import PalbeMLSMessages
public import PalbeWire

/// Why the engine refused. One case an area; the rule that was broken is the payload.
public enum MLSError: Error, Equatable, Sendable {
  /// The bytes are not the structure they should be.
  indirect case malformed(WireError)
  /// A primitive failed on a key or a ciphertext.
  case crypto(CryptoError)
  /// The engine does not implement this suite.
  case unsupportedSuite(CipherSuite)
  /// A leaf breaks a rule of RFC 9420 §7.3.
  case leafNode(LeafNodeError)
  /// A key package breaks a rule of RFC 9420 §10.1.
  case keyPackage(KeyPackageError)
  /// A ratchet tree or a path breaks a rule of RFC 9420 §7.
  case tree(TreeError)
  /// A list of proposals breaks a rule of RFC 9420 §12.2.
  case proposals(ProposalError)
  /// A message breaks a rule of RFC 9420 §6.
  case message(MessageError)
  /// A commit breaks a rule of RFC 9420 §12.4.
  case commit(CommitError)
  /// A Welcome breaks a rule of RFC 9420 §12.4.3.1.
  case welcome(WelcomeError)
  /// The group is not in a state for this operation.
  case state(StateError)
}

/// Rules for leaves, RFC 9420 §7.3.
public enum LeafNodeError: Error, Equatable, Sendable {
  /// The signature does not verify.
  case invalidSignature
  /// The encryption key is no key of the suite.
  case invalidEncryptionKey
  /// The application's policy does not accept the credential.
  case credentialRefused
  /// The leaf does not list the group's protocol version.
  case versionNotSupported
  /// The leaf does not list the group's cipher suite.
  case cipherSuiteNotSupported
  /// The group requires an extension that the leaf does not list.
  case requiredExtensionNotSupported(ExtensionType)
  /// The group requires a proposal that the leaf does not list.
  case requiredProposalNotSupported(ProposalType)
  /// The group requires a credential that the leaf does not list.
  case requiredCredentialNotSupported(CredentialType)
  /// The leaf carries an extension that it does not list.
  case extensionNotListed(ExtensionType)
  /// The leaf carries an extension twice.
  case duplicateExtension
  /// The group context has an extension that the leaf does not list.
  case groupExtensionNotSupported(ExtensionType)
  /// A member uses a credential type that the leaf does not list.
  case memberCredentialNotSupported(CredentialType)
  /// The leaf's credential type is not supported by every member.
  case credentialNotSupportedByAll(CredentialType)
  /// The leaf's source is not the one this place asks for.
  case wrongSource
  /// The lifetime has not begun.
  case notYetValid(notBefore: UInt64)
  /// The lifetime is over.
  case expired(notAfter: UInt64)
  /// Another member has this signature key.
  case signatureKeyInUse
  /// Another node has this encryption key.
  case encryptionKeyInUse
  /// An update must bring a new encryption key.
  case encryptionKeyNotChanged
}

/// Rules for key packages, RFC 9420 §10.1.
public enum KeyPackageError: Error, Equatable, Sendable {
  /// The version is not the group's.
  case wrongVersion(ProtocolVersion)
  /// The suite is not the group's.
  case wrongCipherSuite(CipherSuite)
  /// The signature does not verify.
  case invalidSignature
  /// The init key must differ from the leaf's encryption key.
  case initKeyIsEncryptionKey
  /// The init key is no key of the suite.
  case invalidInitKey
  /// An extension appears twice.
  case duplicateExtension
}

/// Rules for trees and paths, RFC 9420 §7.4 to §7.9 and §12.4.3.3.
public enum TreeError: Error, Equatable, Sendable {
  /// There is no member at this leaf.
  case noMember(LeafIndex)
  /// A parent stands at a leaf's place or a leaf at a parent's.
  case wrongNodeType(index: Int)
  /// The last node is blank: the same tree would have two encodings.
  case trailingBlank
  /// The tree has no node.
  case empty
  /// The tree would be larger than the engine allows.
  case tooLarge
  /// The tree hash is not the one in the group context.
  case wrongTreeHash
  /// No child of this parent carries its hash.
  case invalidParentHash(node: Int)
  /// An unmerged leaf is blank, not below its node, out of order, or missing from a node between.
  case invalidUnmergedLeaf(LeafIndex)
  /// Two nodes share an encryption key.
  case duplicateEncryptionKey
  /// Two members share a signature key.
  case duplicateSignatureKey
  /// The path has another number of nodes than the filtered direct path.
  case wrongPathLength(expected: Int, got: Int)
  /// A path node has another number of ciphertexts than its copath child's resolution.
  case wrongCiphertextCount(expected: Int, got: Int)
  /// The path's leaf does not carry the hash of the path.
  case wrongLeafParentHash
  /// A path key is no key of the suite.
  case invalidPathKey
  /// A path key is already in the tree.
  case pathKeyInUse
  /// The decrypted path secret does not give the path's public keys.
  case pathKeyMismatch(node: Int)
  /// No private key of ours opens the path.
  case noPathKey
  /// A parent's encryption key is no key of the suite: a path could not be sealed to it.
  case invalidParentKey(node: Int)
}

/// Rules for lists of proposals, RFC 9420 §12.2.
public enum ProposalError: Error, Equatable, Sendable {
  /// A reference names a proposal that was not received.
  case unknownReference
  /// This kind of sender may not propose this.
  case notAllowedForSender(ProposalType)
  /// A committer may not commit its own Update.
  case updateByCommitter
  /// A committer may not remove itself.
  case removesCommitter
  /// A Remove names a leaf without a member.
  case removesNobody(LeafIndex)
  /// Two Updates or Removes concern one leaf.
  case severalForLeaf(LeafIndex)
  /// A pre-shared key appears twice.
  case duplicatePreSharedKey
  /// A pre-shared key is for another purpose than this.
  case wrongPreSharedKeyUsage
  /// A pre-shared key's nonce is not as long as the suite's hash.
  case wrongPreSharedKeyNonceLength
  /// A pre-shared key is not known here.
  case unknownPreSharedKey
  /// GroupContextExtensions appears twice.
  case severalGroupContextExtensions
  /// An extension appears twice in GroupContextExtensions.
  case duplicateExtension
  /// A member does not support a new group extension or requirement.
  case extensionNotSupportedByAll(LeafIndex)
  /// ReInit must stand alone.
  case reInitWithOthers
  /// A ReInit lowers the protocol version.
  case reInitVersionTooLow
  /// ExternalInit appears in a member's commit.
  case externalInitByMember
  /// An external commit has not exactly one ExternalInit.
  case externalInitCount(Int)
  /// An external commit has more than one Remove, or a proposal that it may not have.
  case notAllowedInExternalCommit(ProposalType)
  /// An external commit names a proposal by reference.
  case referenceInExternalCommit
  /// More proposals wait than the group keeps.
  case tooManyPending
}

/// Rules for messages, RFC 9420 §6.
public enum MessageError: Error, Equatable, Sendable {
  /// The message is for another group.
  case wrongGroup
  /// The message is of an epoch whose keys are gone.
  case staleMessage(epoch: UInt64)
  /// The message is of an epoch not reached yet: keep it until then.
  case futureEpoch(epoch: UInt64)
  /// The commit is of a past epoch.
  case staleCommit(epoch: UInt64)
  /// The proposal is of a past epoch.
  case staleProposal(epoch: UInt64)
  /// The sender's leaf has no member.
  case unknownSender
  /// The signature does not verify.
  case invalidSignature
  /// The membership tag does not verify.
  case invalidMembershipTag
  /// Application data travelled unencrypted.
  case publicApplicationData
  /// Sender data or content does not decrypt.
  case decryptionFailed
  /// Padding has a byte that is not zero.
  case nonZeroPadding
  /// The key of this generation was used: the message was read before.
  case generationUsed(UInt32)
  /// The generation is too far ahead.
  case generationTooFarAhead(UInt32)
  /// No generation is left in this epoch.
  case generationsExhausted
  /// This kind of sender may not send this.
  case wrongSenderType
  /// A Welcome, GroupInfo or key package is not a message to a group.
  case notAGroupMessage
}

/// Rules for commits, RFC 9420 §12.4.
public enum CommitError: Error, Equatable, Sendable {
  /// These proposals need a path.
  case pathMissing
  /// The confirmation tag is missing or does not verify.
  case invalidConfirmationTag
  /// The commit is our own, and it is not pending any more.
  case ownCommitNotPending
  /// The new epoch's authenticator is the old one's.
  case epochDidNotChange
}

/// Rules for joining, RFC 9420 §12.4.3.1 and §12.4.3.2.
public enum WelcomeError: Error, Equatable, Sendable {
  /// The Welcome is for none of the key packages here.
  case noKeyPackage
  /// The Welcome's suite is not the key package's.
  case wrongCipherSuite(CipherSuite)
  /// The secrets or the GroupInfo do not decrypt.
  case decryptionFailed
  /// The GroupInfo is not about the suite and version of the key package.
  case wrongGroupInfo
  /// The tree is neither in the GroupInfo nor given.
  case treeMissing
  /// The signer's leaf has no member.
  case unknownSigner
  /// The GroupInfo's signature does not verify.
  case invalidSignature
  /// The key package's leaf is not in the tree.
  case notInTree
  /// The confirmation tag does not verify.
  case invalidConfirmationTag
  /// The path secret does not give the tree's public keys.
  case pathKeyMismatch
  /// A pre-shared key is not known here.
  case unknownPreSharedKey
  /// An extension of the GroupInfo appears twice.
  case duplicateExtension
  /// The GroupInfo does not say what key external commits go to, or one that is no key of the suite.
  case externalPubMissing
}

/// States in which an operation makes no sense.
public enum StateError: Error, Equatable, Sendable {
  /// This client was removed: the keys are wiped.
  case removed
  /// The group was closed by a ReInit.
  case reInitialised
  /// A commit of ours waits: merge or clear it first.
  case commitPending
  /// No commit of ours waits.
  case noCommitPending
  /// Nobody can be added by an empty list.
  case nothingToDo
  /// The exporter's length is above 255 hashes.
  case exportTooLong
  /// The exporter secret of this epoch was wiped; the next epoch has another.
  case exporterWiped
}
