/// What is wrong with a request.
///
/// The reason is for programs, and alone is compared; the flaw says more to a developer.
public struct InvalidRequest: Equatable, Sendable {
  /// What kind of thing is wrong.
  public enum Reason: UInt8, Sendable {
    /// Bytes are not the MLS structure that is wanted here, or it names another group or epoch.
    case message
    /// A key package is malformed, expired, somebody else's, or was here before.
    case keyPackage
    /// Members or leaves of the declared change contradict each other or the group.
    case delta
    /// New devices and no welcome, or a welcome and no new device.
    case welcome
    /// An identifier is taken.
    case identifier
    /// A number is out of range.
    case range
    /// More than the server keeps.
    case tooMany
  }
  public var reason: Reason
  /// Nil where the reason says all.
  public var flaw: Flaw?

  private init(_ reason: Reason, _ flaw: Flaw? = nil) {
    self.reason = reason
    self.flaw = flaw
  }

  /// By the reason alone.
  public static func == (one: InvalidRequest, other: InvalidRequest) -> Bool { one.reason == other.reason }

  public static let message = InvalidRequest(.message)
  public static let keyPackage = InvalidRequest(.keyPackage)
  public static let delta = InvalidRequest(.delta)
  public static let welcome = InvalidRequest(.welcome)
  public static let identifier = InvalidRequest(.identifier)
  public static let range = InvalidRequest(.range)
  public static let tooMany = InvalidRequest(.tooMany)

  /// A flaw under its reason.
  public static func because(_ flaw: Flaw) -> InvalidRequest { InvalidRequest(flaw.reason, flaw) }
}

extension InvalidRequest {
  /// Which member of a request is wrong, and what was expected.
  public enum Flaw: UInt8, Sendable, CaseIterable {
    case keyPackageForm, keyPackageSuite, keyPackageSignatureKey, keyPackageCredential, keyPackageLifetime
    case keyPackageLastResort, keyPackageKnown, keyPackageWithoutDevice
    case commitForm, groupInfoForm, welcomeForm, blobForm, ephemeralProposal
    case welcomeMissing, welcomeUnwanted
    case repeatedInDelta, removedWithoutLeaf, ownLeafRemoved, moreThanOneself
    case removedNotMember, addedIsMember, addedLeaf, leafOfStranger, addedNotPeer, addedFounder, addedInReset
    case deviceTaken, groupTaken, messageTaken
    case proposalsBeyondHead
    case packageCount, deviceCount

    /// The reason that it belongs to.
    public var reason: Reason {
      switch self {
      case .keyPackageForm, .keyPackageSuite, .keyPackageSignatureKey, .keyPackageCredential,
        .keyPackageLifetime, .keyPackageLastResort, .keyPackageKnown, .keyPackageWithoutDevice:
        .keyPackage
      case .commitForm, .groupInfoForm, .welcomeForm, .blobForm, .ephemeralProposal: .message
      case .welcomeMissing, .welcomeUnwanted: .welcome
      case .repeatedInDelta, .removedWithoutLeaf, .ownLeafRemoved, .moreThanOneself, .removedNotMember,
        .addedIsMember, .addedLeaf, .leafOfStranger, .addedNotPeer, .addedFounder, .addedInReset:
        .delta
      case .deviceTaken, .groupTaken, .messageTaken: .identifier
      case .proposalsBeyondHead: .range
      case .packageCount, .deviceCount: .tooMany
      }
    }

    /// The member of the request.
    public var field: String {
      switch self {
      case .keyPackageForm, .keyPackageSuite, .keyPackageSignatureKey, .keyPackageCredential,
        .keyPackageLifetime, .keyPackageLastResort, .keyPackageKnown, .packageCount:
        "key_packages"
      case .keyPackageWithoutDevice, .deviceTaken, .deviceCount: "device_id"
      case .commitForm: "commit"
      case .groupInfoForm: "group_info"
      case .welcomeForm, .welcomeMissing, .welcomeUnwanted: "welcome"
      case .blobForm: "blob"
      case .ephemeralProposal: "ephemeral"
      case .repeatedInDelta, .addedIsMember, .addedNotPeer, .addedFounder, .addedInReset: "added_users"
      case .removedWithoutLeaf, .ownLeafRemoved: "removed_leaves"
      case .removedNotMember: "removed_users"
      case .moreThanOneself, .addedLeaf, .leafOfStranger: "added_leaves"
      case .groupTaken: "rfc_group_id"
      case .messageTaken: "client_msg_id"
      case .proposalsBeyondHead: "proposals_up_to"
      }
    }

    /// What is wrong and what was expected, for a developer.
    public var words: String {
      switch self {
      case .keyPackageForm:
        "one is not an MLSMessage with a KeyPackage in it (RFC 9420 §6: mls10, wire format 5) and a leaf made for one"
      case .keyPackageSuite:
        "one is of another cipher suite than 1, MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519"
      case .keyPackageSignatureKey:
        "the leaf of one has another signature key than the device's signature_key"
      case .keyPackageCredential:
        "the leaf of one has not this device's credential: basic, the 16 bytes of the user's id, then those of device_id"
      case .keyPackageLifetime: "the lifetime of one is over, or ends before it begins"
      case .keyPackageLastResort:
        "last_resort needs the extension last_resort (10), and those in key_packages must not have it"
      case .keyPackageKnown: "the init key of one was published before"
      case .keyPackageWithoutDevice: "is needed where key packages come with it: their credentials name it"
      case .commitForm: "is not an MLSMessage with a commit of this group's rfc_group_id and epoch"
      case .groupInfoForm:
        "is not an MLSMessage with a GroupInfo of this rfc_group_id and the epoch that begins (0 without a commit)"
      case .welcomeForm: "is not an MLSMessage with a Welcome"
      case .blobForm:
        "is not an MLSMessage with a PrivateMessage, application or proposal, of the group's rfc_group_id and of epoch"
      case .ephemeralProposal: "a proposal cannot be ephemeral"
      case .welcomeMissing: "is missing: added_leaves has devices besides the caller's"
      case .welcomeUnwanted: "is there, and added_leaves has no device besides the caller's"
      case .repeatedInDelta: "somebody or a device stands twice in it, or both here and in removed_users"
      case .removedWithoutLeaf: "a device in it has no leaf in the group"
      case .ownLeafRemoved: "the caller's own device cannot be removed by its own commit"
      case .moreThanOneself:
        "a device that joins from outside adds itself, removes its old leaf if there is one, and changes nothing else"
      case .removedNotMember: "somebody in it is no member, or is the caller (use leave)"
      case .addedIsMember: "somebody in it is a member already"
      case .addedLeaf: "a device in it is not known, has a leaf already, or its index is taken"
      case .leafOfStranger: "the user of a device in it is neither a member who stays nor in added_users"
      case .addedNotPeer: "in a direct chat it has the peer and nobody else (nobody in a chat with oneself)"
      case .addedFounder: "the founder is a member without being added"
      case .addedInReset: "nobody comes with a reset"
      case .deviceTaken: "is somebody else's, or was enrolled with another signature_key"
      case .groupTaken: "is another group's"
      case .messageTaken: "was used for a message in another group"
      case .proposalsBeyondHead: "is beyond the group's head_seq"
      case .packageCount: "the device would have more than the server keeps of one"
      case .deviceCount: "the user has as many devices as the server keeps of one"
      }
    }
  }
}
