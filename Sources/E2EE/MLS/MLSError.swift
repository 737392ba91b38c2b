public import PalbeCrypto
public import PalbeMLSMessages
public import PalbeWire

/// Why the engine refused. One case an area; the rule that was broken is the payload.
public enum MLSError: Error, Equatable, Sendable {
  /// V001: The bytes are not the structure they should be.
  indirect case malformed(WireError)
  /// V002: A primitive failed on a key or a ciphertext.
  case crypto(CryptoError)
  /// V003: The engine does not implement this suite.
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
  /// V101: The signature does not verify.
  case invalidSignature
  /// V102: The encryption key is no key of the suite.
  case invalidEncryptionKey
  /// V103: The application's policy does not accept the credential.
  case credentialRefused
  /// V104: The leaf does not list the group's protocol version.
  case versionNotSupported
  /// V105: The leaf does not list the group's cipher suite.
  case cipherSuiteNotSupported
  /// V106: The group requires an extension that the leaf does not list.
  case requiredExtensionNotSupported(ExtensionType)
  /// V107: The group requires a proposal that the leaf does not list.
  case requiredProposalNotSupported(ProposalType)
  /// V108: The group requires a credential that the leaf does not list.
  case requiredCredentialNotSupported(CredentialType)
  /// V109: The leaf carries an extension that it does not list.
  case extensionNotListed(ExtensionType)
  /// V110: The leaf carries an extension twice.
  case duplicateExtension
  /// V111: The group context has an extension that the leaf does not list.
  case groupExtensionNotSupported(ExtensionType)
  /// V112: A member uses a credential type that the leaf does not list.
  case memberCredentialNotSupported(CredentialType)
  /// V113: The leaf's credential type is not supported by every member.
  case credentialNotSupportedByAll(CredentialType)
  /// V114: The leaf's source is not the one this place asks for.
  case wrongSource
  /// V115: The lifetime has not begun.
  case notYetValid(notBefore: UInt64)
  /// V116: The lifetime is over.
  case expired(notAfter: UInt64)
  /// V117: Another member has this signature key.
  case signatureKeyInUse
  /// V118: Another node has this encryption key.
  case encryptionKeyInUse
  /// V119: An update must bring a new encryption key.
  case encryptionKeyNotChanged
  /// V120: The application's policy does not accept the credential in place of the member's old one.
  case successorRefused
  /// V121: The lifetime is longer than the application allows.
  case lifetimeTooLong(seconds: UInt64)
}

/// Rules for key packages, RFC 9420 §10.1.
public enum KeyPackageError: Error, Equatable, Sendable {
  /// V201: The version is not the group's.
  case wrongVersion(ProtocolVersion)
  /// V202: The suite is not the group's.
  case wrongCipherSuite(CipherSuite)
  /// V203: The signature does not verify.
  case invalidSignature
  /// V204: The init key must differ from the leaf's encryption key.
  case initKeyIsEncryptionKey
  /// V205: The init key is no key of the suite.
  case invalidInitKey
  /// V206: An extension appears twice.
  case duplicateExtension
}

/// Rules for trees and paths, RFC 9420 §7.4 to §7.9 and §12.4.3.3.
public enum TreeError: Error, Equatable, Sendable {
  /// There is no member at this leaf.
  case noMember(LeafIndex)
  /// V302: A parent stands at a leaf's place or a leaf at a parent's.
  case wrongNodeType(index: Int)
  /// V303: The last node is blank: the same tree would have two encodings.
  case trailingBlank
  /// V304: The tree has no node.
  case empty
  /// V305: The tree would be larger than the engine allows.
  case tooLarge
  /// V306: The tree hash is not the one in the group context.
  case wrongTreeHash
  /// V307: No child of this parent carries its hash.
  case invalidParentHash(node: Int)
  /// V308: An unmerged leaf is blank, not below its node, out of order, or missing from a node between.
  case invalidUnmergedLeaf(LeafIndex)
  /// V309: Two nodes share an encryption key.
  case duplicateEncryptionKey
  /// V310: Two members share a signature key.
  case duplicateSignatureKey
  /// V311: The path has another number of nodes than the filtered direct path.
  case wrongPathLength(expected: Int, got: Int)
  /// V312: A path node has another number of ciphertexts than its copath child's resolution.
  case wrongCiphertextCount(expected: Int, got: Int)
  /// V313: The path's leaf does not carry the hash of the path.
  case wrongLeafParentHash
  /// V314: A path key is no key of the suite.
  case invalidPathKey
  /// V315: A path key is already in the tree.
  case pathKeyInUse
  /// V316: The decrypted path secret does not give the path's public keys.
  case pathKeyMismatch(node: Int)
  /// V317: No private key of ours opens the path.
  case noPathKey
  /// V301: A parent's encryption key is no key of the suite: a path could not be sealed to it.
  case invalidParentKey(node: Int)
}

/// Rules for lists of proposals, RFC 9420 §12.2.
public enum ProposalError: Error, Equatable, Sendable {
  /// V401: A reference names a proposal that was not received.
  case unknownReference
  /// V402: This kind of sender may not propose this.
  case notAllowedForSender(ProposalType)
  /// V403: A committer may not commit its own Update.
  case updateByCommitter
  /// V404: A committer may not remove itself.
  case removesCommitter
  /// V405: A Remove names a leaf without a member.
  case removesNobody(LeafIndex)
  /// V406: Two Updates or Removes concern one leaf.
  case severalForLeaf(LeafIndex)
  /// V407: A pre-shared key appears twice.
  case duplicatePreSharedKey
  /// V408: A pre-shared key is for another purpose than this.
  case wrongPreSharedKeyUsage
  /// V409: A pre-shared key's nonce is not as long as the suite's hash.
  case wrongPreSharedKeyNonceLength
  /// V410: A pre-shared key is not known here.
  case unknownPreSharedKey
  /// V411: GroupContextExtensions appears twice.
  case severalGroupContextExtensions
  /// V412: An extension appears twice in GroupContextExtensions.
  case duplicateExtension
  /// V413: A member does not support a new group extension or requirement.
  case extensionNotSupportedByAll(LeafIndex)
  /// V414: ReInit must stand alone.
  case reInitWithOthers
  /// V415: A ReInit lowers the protocol version.
  case reInitVersionTooLow
  /// V416: ExternalInit appears in a member's commit.
  case externalInitByMember
  /// V417: An external commit has not exactly one ExternalInit.
  case externalInitCount(Int)
  /// V418: An external commit has more than one Remove, or a proposal that it may not have.
  case notAllowedInExternalCommit(ProposalType)
  /// V419: An external commit names a proposal by reference.
  case referenceInExternalCommit
  /// V420: More proposals wait than the group keeps.
  case tooManyPending
  /// V421: The application did not declare this type of proposal, or a member does not list it.
  case typeNotSupported(ProposalType)
  /// V422: The application's policy does not accept the credential of an external sender.
  case externalSenderRefused(index: UInt32)
}

/// Rules for messages, RFC 9420 §6.
public enum MessageError: Error, Equatable, Sendable {
  /// V501: The message is for another group.
  case wrongGroup
  /// V502: The message is of an epoch whose keys are gone.
  case staleMessage(epoch: UInt64)
  /// V503: The message is of an epoch not reached yet: keep it until then.
  case futureEpoch(epoch: UInt64)
  /// V504: The commit is of a past epoch.
  case staleCommit(epoch: UInt64)
  /// V505: The proposal is of a past epoch.
  case staleProposal(epoch: UInt64)
  /// V506: The sender's leaf has no member.
  case unknownSender
  /// V507: The signature does not verify.
  case invalidSignature
  /// V508: The membership tag does not verify.
  case invalidMembershipTag
  /// V509: Application data travelled unencrypted.
  case publicApplicationData
  /// V510: Sender data or content does not decrypt.
  case decryptionFailed
  /// V511: Padding has a byte that is not zero.
  case nonZeroPadding
  /// V512: The key of this generation was used: the message was read before.
  case generationUsed(UInt32)
  /// V513: The generation is too far ahead.
  case generationTooFarAhead(UInt32)
  /// V514: No generation is left in this epoch.
  case generationsExhausted
  /// V515: This kind of sender may not send this.
  case wrongSenderType
  /// V516: A Welcome, GroupInfo or key package is not a message to a group.
  case notAGroupMessage
  /// V517: The message says it is ours, but this state has not sent it: it is forged, or the state is an older copy.
  case notSentHere(generation: UInt32)
}

/// Rules for commits, RFC 9420 §12.4.
public enum CommitError: Error, Equatable, Sendable {
  /// V601: These proposals need a path.
  case pathMissing
  /// V602: The confirmation tag is missing or does not verify.
  case invalidConfirmationTag
  /// V603: The commit is our own, and it is not pending any more.
  case ownCommitNotPending
  /// V604: The new epoch's authenticator is the old one's.
  case epochDidNotChange
  /// V605: No epoch can follow this one: its number is the largest.
  case epochsExhausted
}

/// Rules for joining, RFC 9420 §12.4.3.1 and §12.4.3.2.
public enum WelcomeError: Error, Equatable, Sendable {
  /// V701: The Welcome is for none of the key packages here.
  case noKeyPackage
  /// V702: The Welcome's suite is not the key package's.
  case wrongCipherSuite(CipherSuite)
  /// V703: The secrets or the GroupInfo do not decrypt.
  case decryptionFailed
  /// V704: The GroupInfo is not about the suite and version of the key package.
  case wrongGroupInfo
  /// V705: The tree is neither in the GroupInfo nor given.
  case treeMissing
  /// V706: The signer's leaf has no member.
  case unknownSigner
  /// V707: The GroupInfo's signature does not verify.
  case invalidSignature
  /// V708: The key package's leaf is not in the tree.
  case notInTree
  /// V709: The confirmation tag does not verify.
  case invalidConfirmationTag
  /// V710: The path secret does not give the tree's public keys.
  case pathKeyMismatch
  /// V711: A pre-shared key is not known here.
  case unknownPreSharedKey
  /// V712: An extension of the GroupInfo appears twice.
  case duplicateExtension
  /// V713: The GroupInfo does not say what key external commits go to, or one that is no key of the suite.
  case externalPubMissing
  /// V714: More than one pre-shared key has the usage reinit or branch.
  case severalContinuations
  /// V715: A group that continues another starts for its members in epoch 1.
  case continuationNotInFirstEpoch(epoch: UInt64)
  /// V716: The key of usage reinit is not of an epoch that a ReInit led to.
  case continuesWithoutReInit
  /// V717: Version, suite, group or extensions are not those of the ReInit.
  case wrongReInitParameters
  /// V718: The members are not those of the group that was reinitialised, or of a branch one is none of its group's.
  case wrongMembers
  /// V719: A branch has another version or suite than the group it comes from.
  case wrongBranchParameters
  /// V720: The members of the epoch that a branch comes from are forgotten.
  case membersForgotten
  /// V721: The Welcome does not continue the group that it should.
  case continuationMissing
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
  /// A client of another cipher suite cannot take over a membership, nor found the group that a ReInit asks for.
  case clientOfOtherSuite
  /// A group is continued by ReInit only after a ReInit was committed.
  case notReInitialised
  /// The engine knows no other version than MLS 1.0.
  case versionNotSupported(ProtocolVersion)
  /// The exporter secret of this epoch was wiped; the next epoch has another.
  case exporterWiped
}
