public import PalbeBackendCore
public import PalbeMLSMessages
public import PalbeUnits
import PalbeWire

/// MLS messages as the server sees them: true at the front, nonsense behind.
public enum Wire {
  /// The encryption of tests: nobody who looks for the bytes finds them, whatever stands around them.
  public static func sealed(_ bytes: [UInt8]) -> [UInt8] { bytes.map { $0 ^ 0xa5 } }

  /// What `sealed` has made, also in the middle of other bytes.
  public static func opened(_ bytes: [UInt8]) -> [UInt8] { sealed(bytes) }

  public static func keyPackage(
    initKey: [UInt8], signatureKey: [UInt8], user: UserID, device: DeviceID, notAfter: UInt64,
    isLastResort: Bool = false, cipherSuite: CipherSuite = .x25519AES128GCM
  ) -> [UInt8] {
    let leaf = LeafNode(
      encryptionKey: [1], signatureKey: signatureKey, credential: .basic(identity: user.bytes + device.bytes),
      capabilities: Capabilities(cipherSuites: [.x25519AES128GCM]),
      source: .keyPackage(Lifetime(notBefore: 0, notAfter: notAfter)))
    let package = KeyPackage(
      cipherSuite: cipherSuite, initKey: initKey, leafNode: leaf,
      extensions: isLastResort ? [Extension(type: .lastResort, data: [])] : [])
    return MLSMessage.keyPackage(package).encoded()
  }

  private static func message(
    _ type: ContentType, _ group: MLSGroupID, _ epoch: Epoch, _ payload: [UInt8]
  ) -> [UInt8] {
    MLSMessage.privateMessage(
      PrivateMessage(
        groupID: group.bytes, epoch: epoch, contentType: type, authenticatedData: [],
        encryptedSenderData: [], ciphertext: payload)
    ).encoded()
  }

  public static func application(_ group: MLSGroupID, _ epoch: Epoch, _ payload: [UInt8]) -> [UInt8] {
    message(.application, group, epoch, payload)
  }

  public static func proposal(_ group: MLSGroupID, _ epoch: Epoch, _ payload: [UInt8]) -> [UInt8] {
    message(.proposal, group, epoch, payload)
  }

  public static func commit(_ group: MLSGroupID, _ epoch: Epoch, _ payload: [UInt8]) -> [UInt8] {
    message(.commit, group, epoch, payload)
  }

  public static func groupInfo(_ group: MLSGroupID, _ epoch: Epoch) -> [UInt8] {
    MLSMessage.groupInfo(
      GroupInfo(
        context: GroupContext(
          cipherSuite: .x25519AES128GCM, groupID: group.bytes, epoch: epoch, treeHash: [3],
          confirmedTranscriptHash: [4]),
        extensions: [], confirmationTag: [5], signer: LeafIndex(0))
    ).encoded()
  }

  public static func welcome(_ payload: [UInt8]) -> [UInt8] {
    MLSMessage.welcome(
      Welcome(cipherSuite: .x25519AES128GCM, secrets: [], encryptedGroupInfo: payload)
    ).encoded()
  }
}
