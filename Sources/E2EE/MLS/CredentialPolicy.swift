public import PalbeMLSMessages

/// A credential that the application is asked about, and all that the engine knows of who shows it.
public struct PresentedCredential: Sendable, Hashable {
  /// The claim: an identity, or a certificate chain with the end entity's certificate first.
  public let credential: Credential
  /// Verifies the messages of who shows it. For an X.509 credential the policy must find this key in the end entity's
  /// certificate (RFC 9420 §5.3): the engine reads no certificates.
  public let signatureKey: [UInt8]
  /// The group it is for.
  public let groupID: [UInt8]
  /// What its owner is or becomes.
  public let role: Role

  /// What the owner of a credential is or becomes in the group.
  public enum Role: Sendable, Hashable {
    /// Somebody whom an Add or an external commit brings in.
    case newMember
    /// A member already, in a tree that was received with a Welcome or a GroupInfo; or the founder of a group.
    case member(LeafIndex)
    /// A member that replaces its leaf: by an Update, by a commit, or by an external commit that removes its old leaf.
    case replacement(of: Member)
    /// Somebody outside who may propose, by place in `external_senders`.
    case externalSender(index: UInt32)
  }
}

/// The application's word on who a member is, RFC 9420 §5.3.1: the authentication service.
///
/// It must answer alike at all members of a group: who refuses a commit that others accept stays behind.
public protocol CredentialPolicy: Sendable {
  /// True when `credential` may be used with `signatureKey`.
  func accepts(_ credential: Credential, signatureKey: [UInt8]) -> Bool

  /// True when this credential may play its role. By default the role does not matter.
  func accepts(_ presented: PresentedCredential) -> Bool

  /// True when the member `old` may show another credential from now on: the new one names the same client. Asked
  /// after `accepts`, and only when the credentials differ. By default false.
  func accepts(_ presented: PresentedCredential, asSuccessorOf old: Member) -> Bool

  /// True when a member of a group that continues another (by ReInit or branch, RFC 9420 §11.2, §11.3) is the member
  /// `old` of the other. By default when their credentials are equal.
  func matches(_ member: Member, _ old: Member) -> Bool
}

extension CredentialPolicy {
  /// The role does not matter.
  public func accepts(_ presented: PresentedCredential) -> Bool {
    accepts(presented.credential, signatureKey: presented.signatureKey)
  }
  /// A credential may not change.
  public func accepts(_ presented: PresentedCredential, asSuccessorOf old: Member) -> Bool { false }
  /// Equal credentials.
  public func matches(_ member: Member, _ old: Member) -> Bool { member.credential == old.credential }
}

/// Accepts every credential, as long as a member keeps its own: for tests, and where identities are checked elsewhere.
public struct AnyCredentialAccepted: CredentialPolicy {
  /// A policy without a rule.
  public init() {}
  /// Always true.
  public func accepts(_ credential: Credential, signatureKey: [UInt8]) -> Bool { true }
}
