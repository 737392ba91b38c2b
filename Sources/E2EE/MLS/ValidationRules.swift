// Numbers of validation rules. docs/mls-validation.md lists them, and each test names those that it breaks.

extension MLSError {
  /// The number of the broken rule in docs/mls-validation.md, such as "V101"; nil for a wrong state of the group.
  public var rule: String? {
    switch self {
    case .malformed: "V001"
    case .crypto: "V002"
    case .unsupportedSuite: "V003"
    case .leafNode(let error): error.rule
    case .keyPackage(let error): error.rule
    case .tree(let error): error.rule
    case .proposals(let error): error.rule
    case .message(let error): error.rule
    case .commit(let error): error.rule
    case .welcome(let error): error.rule
    case .state: nil
    }
  }
}

extension LeafNodeError {
  /// The rule's number in docs/mls-validation.md.
  public var rule: String {
    switch self {
    case .invalidSignature: "V101"
    case .invalidEncryptionKey: "V102"
    case .credentialRefused: "V103"
    case .versionNotSupported: "V104"
    case .cipherSuiteNotSupported: "V105"
    case .requiredExtensionNotSupported: "V106"
    case .requiredProposalNotSupported: "V107"
    case .requiredCredentialNotSupported: "V108"
    case .extensionNotListed: "V109"
    case .duplicateExtension: "V110"
    case .groupExtensionNotSupported: "V111"
    case .memberCredentialNotSupported: "V112"
    case .credentialNotSupportedByAll: "V113"
    case .wrongSource: "V114"
    case .notYetValid: "V115"
    case .expired: "V116"
    case .signatureKeyInUse: "V117"
    case .encryptionKeyInUse: "V118"
    case .encryptionKeyNotChanged: "V119"
    case .successorRefused: "V120"
    case .lifetimeTooLong: "V121"
    }
  }
}

extension KeyPackageError {
  /// The rule's number in docs/mls-validation.md.
  public var rule: String {
    switch self {
    case .wrongVersion: "V201"
    case .wrongCipherSuite: "V202"
    case .invalidSignature: "V203"
    case .initKeyIsEncryptionKey: "V204"
    case .invalidInitKey: "V205"
    case .duplicateExtension: "V206"
    }
  }
}

extension TreeError {
  /// The rule's number in docs/mls-validation.md; nil where a caller names a leaf without a member.
  public var rule: String? {
    switch self {
    case .noMember: nil
    case .invalidParentKey: "V301"
    case .wrongNodeType: "V302"
    case .trailingBlank: "V303"
    case .empty: "V304"
    case .tooLarge: "V305"
    case .wrongTreeHash: "V306"
    case .invalidParentHash: "V307"
    case .invalidUnmergedLeaf: "V308"
    case .duplicateEncryptionKey: "V309"
    case .duplicateSignatureKey: "V310"
    case .wrongPathLength: "V311"
    case .wrongCiphertextCount: "V312"
    case .wrongLeafParentHash: "V313"
    case .invalidPathKey: "V314"
    case .pathKeyInUse: "V315"
    case .pathKeyMismatch: "V316"
    case .noPathKey: "V317"
    }
  }
}

extension ProposalError {
  /// The rule's number in docs/mls-validation.md.
  public var rule: String {
    switch self {
    case .unknownReference: "V401"
    case .notAllowedForSender: "V402"
    case .updateByCommitter: "V403"
    case .removesCommitter: "V404"
    case .removesNobody: "V405"
    case .severalForLeaf: "V406"
    case .duplicatePreSharedKey: "V407"
    case .wrongPreSharedKeyUsage: "V408"
    case .wrongPreSharedKeyNonceLength: "V409"
    case .unknownPreSharedKey: "V410"
    case .severalGroupContextExtensions: "V411"
    case .duplicateExtension: "V412"
    case .extensionNotSupportedByAll: "V413"
    case .reInitWithOthers: "V414"
    case .reInitVersionTooLow: "V415"
    case .externalInitByMember: "V416"
    case .externalInitCount: "V417"
    case .notAllowedInExternalCommit: "V418"
    case .referenceInExternalCommit: "V419"
    case .tooManyPending: "V420"
    case .typeNotSupported: "V421"
    case .externalSenderRefused: "V422"
    }
  }
}

extension MessageError {
  /// The rule's number in docs/mls-validation.md.
  public var rule: String {
    switch self {
    case .wrongGroup: "V501"
    case .staleMessage: "V502"
    case .futureEpoch: "V503"
    case .staleCommit: "V504"
    case .staleProposal: "V505"
    case .unknownSender: "V506"
    case .invalidSignature: "V507"
    case .invalidMembershipTag: "V508"
    case .publicApplicationData: "V509"
    case .decryptionFailed: "V510"
    case .nonZeroPadding: "V511"
    case .generationUsed: "V512"
    case .generationTooFarAhead: "V513"
    case .generationsExhausted: "V514"
    case .wrongSenderType: "V515"
    case .notAGroupMessage: "V516"
    case .notSentHere: "V517"
    }
  }
}

extension CommitError {
  /// The rule's number in docs/mls-validation.md.
  public var rule: String {
    switch self {
    case .pathMissing: "V601"
    case .invalidConfirmationTag: "V602"
    case .ownCommitNotPending: "V603"
    case .epochDidNotChange: "V604"
    case .epochsExhausted: "V605"
    }
  }
}

extension WelcomeError {
  /// The rule's number in docs/mls-validation.md.
  public var rule: String {
    switch self {
    case .noKeyPackage: "V701"
    case .wrongCipherSuite: "V702"
    case .decryptionFailed: "V703"
    case .wrongGroupInfo: "V704"
    case .treeMissing: "V705"
    case .unknownSigner: "V706"
    case .invalidSignature: "V707"
    case .notInTree: "V708"
    case .invalidConfirmationTag: "V709"
    case .pathKeyMismatch: "V710"
    case .unknownPreSharedKey: "V711"
    case .duplicateExtension: "V712"
    case .externalPubMissing: "V713"
    case .severalContinuations: "V714"
    case .continuationNotInFirstEpoch: "V715"
    case .continuesWithoutReInit: "V716"
    case .wrongReInitParameters: "V717"
    case .wrongMembers: "V718"
    case .wrongBranchParameters: "V719"
    case .membersForgotten: "V720"
    case .continuationMissing: "V721"
    }
  }
}
