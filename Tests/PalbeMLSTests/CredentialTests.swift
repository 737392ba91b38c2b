import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import Synchronization
import Testing

@testable import PalbeMLS

/// A policy of an application with one certificate authority: the chain ends at it, the end entity's key is the leaf's,
/// and the common name names the client for ever.
private struct OneAuthority: CredentialPolicy {
  let root: [UInt8]

  private func name(_ credential: Credential, _ signatureKey: [UInt8]) -> String? {
    guard case .x509(let chain) = credential, chain.count == 2, chain[1] == root,
      let entity = try? TestCertificate.Parsed(chain[0]), let authority = try? TestCertificate.Parsed(root),
      entity.isSigned(by: authority), entity.publicKey == signatureKey
    else { return nil }
    return entity.commonName
  }

  func accepts(_ credential: Credential, signatureKey: [UInt8]) -> Bool {
    name(credential, signatureKey) != nil
  }

  func accepts(_ presented: PresentedCredential, asSuccessorOf old: Member) -> Bool {
    name(presented.credential, presented.signatureKey) == name(old.credential, old.signatureKey)
  }
}

/// Notes what it is asked.
private final class Witness: CredentialPolicy {
  let seen = Mutex<[PresentedCredential]>([])
  func accepts(_ credential: Credential, signatureKey: [UInt8]) -> Bool { true }
  func accepts(_ presented: PresentedCredential) -> Bool {
    seen.withLock { $0.append(presented) }
    return true
  }
  func accepts(_ presented: PresentedCredential, asSuccessorOf old: Member) -> Bool { true }
  func take() -> [PresentedCredential.Role] {
    seen.withLock { list in
      defer { list = [] }
      return list.map(\.role)
    }
  }
}

@Suite("RFC 9420 §5.3: credentials")
struct CredentialTests {
  private struct World {
    let root: TestCertificate
    let configuration: MLSConfiguration
    var random = RandomSource(seed: 1)

    init() throws {
      root = try TestCertificate(commonName: "authority", seed: 200)
      var configuration = MLSConfiguration()
      configuration.credentialPolicy = OneAuthority(root: root.bytes)
      self.configuration = configuration
    }

    func client(_ name: String, seed: UInt8, keySeed: UInt8? = nil, by issuer: TestCertificate? = nil) throws
      -> MLSClient
    {
      let certificate = try TestCertificate(commonName: name, seed: seed, issuer: issuer ?? root)
      let key = [UInt8](repeating: keySeed ?? seed, count: 32)
      return try MLSClient(
        credential: .x509(certificates: [certificate.bytes, root.bytes]), configuration: configuration,
        signaturePrivateKey: SymmetricKey(copying: key))
    }
  }

  // Rules: V103 V120
  @Test(
    "RFC 9420 §5.3, §5.3.1: X.509 chains are carried, and the policy finds the leaf's key in the certificate")
  func x509() throws {
    var world = try World()
    let anna = try world.client("anna", seed: 1)
    let ben = try world.client("ben", seed: 2)
    let keyPackage = try ben.makeKeyPackage(lifetime: day, using: &world.random)
    var annas = try MLSGroup.create(groupID: [1], client: anna, lifetime: day, using: &world.random)
    let bundle = try annas.add([keyPackage.keyPackage], at: noon, using: &world.random)
    try annas.mergePendingCommit(at: noon)
    let welcome = try MLSMessage(decoding: try #require(bundle.welcome).encoded())
    var bens = try MLSGroup.join(welcome, keyPackages: [keyPackage], client: ben)
    let credential = bens.members[0].credential
    #expect(credential == anna.credential)

    // Another's key under the certificate, and a certificate of another authority.
    let stranger = try TestCertificate(commonName: "authority", seed: 201)
    for impostor in [
      try world.client("carl", seed: 3, keySeed: 4), try world.client("carl", seed: 3, by: stranger),
    ] {
      let wrong = try impostor.makeKeyPackage(lifetime: day, using: &world.random).keyPackage
      #expect(throws: MLSError.leafNode(.credentialRefused)) {
        _ = try annas.add([wrong], at: noon, using: &world.random)
      }
    }
    // A renewed certificate with a new key, by commit and by Update; one of another name is no successor.
    let renewed = try world.client("ben", seed: 5)
    let commit = try bens.commit(as: renewed, at: noon, using: &world.random)
    #expect(try annas.process(commit.commit, at: noon) == .commit(commit.effect))
    try bens.mergePendingCommit(at: noon)
    let update = try annas.proposeUpdate(as: try world.client("anna", seed: 6), using: &world.random)
    _ = try bens.process(update, at: noon)
    let second = try bens.commit(at: noon, using: &world.random)
    _ = try annas.process(second.commit, at: noon)
    try bens.mergePendingCommit(at: noon)
    let message = try annas.encrypt([1], using: &world.random)
    guard case .application = try bens.process(message, at: noon) else {
      Issue.record("expected application data")
      return
    }
    #expect(throws: MLSError.leafNode(.successorRefused)) {
      _ = try bens.commit(as: try world.client("dora", seed: 7), at: noon, using: &world.random)
    }
    let theft = try bens.proposeUpdate(as: try world.client("anna", seed: 8), using: &world.random)
    #expect(throws: MLSError.leafNode(.successorRefused)) { try annas.process(theft, at: noon) }
    // By an external commit, too, somebody else does not get the place.
    let information = try annas.groupInfo()
    #expect(throws: MLSError.leafNode(.successorRefused)) {
      _ = try MLSGroup.joinExternally(
        information, client: try world.client("dora", seed: 9), replacing: LeafIndex(1), using: &world.random)
    }
    let rejoin = try MLSGroup.joinExternally(
      information, client: try world.client("ben", seed: 10), replacing: LeafIndex(1), using: &world.random)
    let external = rejoin.commit
    _ = try annas.process(external, at: noon)
    let authenticator = annas.epochAuthenticator
    let theirs = rejoin.accepted().epochAuthenticator
    #expect(authenticator == theirs)
  }

  @Test("RFC 9420 §5.3.1: a policy is told who shows a credential: new, a member, in whose place, or outside")
  func roles() throws {
    var configuration = MLSConfiguration()
    let witness = Witness()
    configuration.credentialPolicy = witness
    var group = try TestGroup(2, configuration)
    _ = witness.take()
    try group.add(1, by: 0)
    let roles = witness.take()
    #expect(roles.count { $0 == .newMember } == 2, "once at the committer, once at the other member")
    for leaf: UInt32 in 0..<3 { #expect(roles.contains(.member(LeafIndex(leaf)))) }
    let member = group.members[1].group.members[1]
    _ = try group.members[0].process(try group.members[1].group.proposeUpdate(using: &group.random))
    #expect(witness.take() == [.replacement(of: member)])
    group.members[0].group.clearPendingProposals()
    try group.update(by: 1)
    #expect(witness.take() == [.replacement(of: member), .replacement(of: member)])
    let server = try makeClient("server", using: &group.random)
    let senders = ExternalSenderList([
      ExternalSender(signatureKey: server.signaturePublicKey, credential: server.credential)
    ])
    try group.deliver(
      try group.members[0].group.commit(
        [.groupContextExtensions([Extension(type: .externalSenders, data: senders.encoded())])], at: noon,
        using: &group.random), from: 0)
    #expect(witness.take().count { $0 == .externalSender(index: 0) } == 3)
    let join = try MLSGroup.joinExternally(
      try group.members[0].group.groupInfo(),
      client: try makeClient("new", configuration, using: &group.random),
      using: &group.random)
    _ = witness.take()
    _ = try group.members[0].process(join.commit)
    #expect(witness.take() == [.newMember])
    _ = consume join
  }

  // Rules: V422
  @Test("RFC 9420 §5.3.1: a group lets nobody propose from outside whom the policy refuses")
  func externalSender() throws {
    struct NoServers: CredentialPolicy {
      func accepts(_ credential: Credential, signatureKey: [UInt8]) -> Bool { true }
      func accepts(_ presented: PresentedCredential) -> Bool {
        if case .externalSender = presented.role { false } else { true }
      }
    }
    var configuration = MLSConfiguration()
    configuration.credentialPolicy = NoServers()
    var group = try TestGroup(2, configuration)
    let senders = ExternalSenderList([ExternalSender(signatureKey: [1], credential: .basic(identity: [1]))])
    let list = [Extension(type: .externalSenders, data: senders.encoded())]
    #expect(throws: MLSError.proposals(.externalSenderRefused(index: 0))) {
      _ = try group.members[0].group.commit(
        [.groupContextExtensions(list)], at: noon, using: &group.random)
    }
    #expect(throws: MLSError.proposals(.externalSenderRefused(index: 0))) {
      _ = try MLSGroup.create(
        groupID: [1], client: group.members[0].client, lifetime: day, extensions: list, using: &group.random)
    }
  }

  @Test("e2ee 6.22: with a new signing key the commit has a path, and the Welcome is signed by the new key")
  func newSigner() throws {
    var group = try TestGroup(3)
    let old = group.members[0].client
    let renewed = try makeClient("member 0", using: &group.random)
    let newcomer = try makeClient("newcomer", using: &group.random)
    let keyPackage = try newcomer.makeKeyPackage(lifetime: day, using: &group.random)
    let bundle = try group.members[0].group.commit(
      [.add(keyPackage.keyPackage)], path: false, as: renewed, at: noon, using: &group.random)
    #expect(bundle.effect.hasPath)
    // Until the merge the old key is ours.
    var speaker = group.members[0].group.client
    #expect(speaker === old)
    try group.deliver(bundle, from: 0)
    speaker = group.members[0].group.client
    #expect(speaker === renewed)
    let key = group.members[1].group.members[0].signatureKey
    #expect(key == renewed.signaturePublicKey)
    group.members.append(
      TestMember(
        newcomer, try MLSGroup.join(try #require(bundle.welcome), keyPackages: [keyPackage], client: newcomer)
      ))
    try group.checkAgreement()
    // By an Update that somebody else commits.
    let again = try makeClient("member 1", using: &group.random)
    let update = try group.members[1].group.proposeUpdate(as: again, using: &group.random)
    for index in [0, 2, 3] { _ = try group.members[index].process(update) }
    try group.update(by: 3)
    speaker = group.members[1].group.client
    #expect(speaker === again)
    try group.checkAgreement()
    try group.update(by: 1)
    try group.checkAgreement()
    try group.checkPrivateKeys()
    // A cleared commit leaves the key as it was.
    _ = try group.members[0].group.commit(as: old, at: noon, using: &group.random)
    group.members[0].group.clearPendingCommit()
    speaker = group.members[0].group.client
    #expect(speaker === renewed)
    let other = try makeClient("p256", suite: .p256AES128GCM, using: &group.random)
    #expect(throws: MLSError.state(.clientOfOtherSuite)) {
      _ = try group.members[0].group.commit(as: other, at: noon, using: &group.random)
    }
    #expect(throws: MLSError.state(.clientOfOtherSuite)) {
      _ = try group.members[0].group.proposeUpdate(as: other, using: &group.random)
    }
  }

  // Rules: V113
  @Test("RFC 9420 §5.3: a credential of a type that only the application knows is carried byte for byte")
  func unknownType() throws {
    let type = CredentialType(rawValue: 0xf001)
    var configuration = MLSConfiguration()
    configuration.credentialTypes = [type]
    var random = RandomSource(seed: 1)
    func client(_ data: [UInt8], _ configuration: MLSConfiguration) throws -> MLSClient {
      try MLSClient(credential: .other(type, data: data), configuration: configuration, using: &random)
    }
    let anna = try client([1, 2, 3], configuration)
    let ben = try client([], configuration)
    let keyPackage = try ben.makeKeyPackage(lifetime: day, using: &random)
    guard case .keyPackage(let received) = try MLSMessage(decoding: keyPackage.message.encoded()) else {
      return
    }
    #expect(received == keyPackage.keyPackage)
    #expect(received.leafNode.capabilities.credentials == [.basic, .x509, type])
    var annas = try MLSGroup.create(groupID: [1], client: anna, lifetime: day, using: &random)
    let bundle = try annas.add([received], at: noon, using: &random)
    try annas.mergePendingCommit(at: noon)
    let bens = try MLSGroup.join(try #require(bundle.welcome), keyPackages: [keyPackage], client: ben)
    let first = bens.members[0].credential
    #expect(first == .other(type, data: [1, 2, 3]))
    // A client that does not know it can be no member beside it.
    let plain = try makeClient("plain", using: &random)
    var other = try MLSGroup.create(groupID: [2], client: plain, lifetime: day, using: &random)
    #expect(throws: MLSError.leafNode(.credentialNotSupportedByAll(type))) {
      _ = try other.add([received], at: noon, using: &random)
    }
    #expect(throws: (any Error).self) { try Credential(decoding: [0, 0, 0]) }
  }
}
