import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeMLS

@Suite("RFC 9420 §13.5: values nobody knows")
struct GREASETests {
  private var configuration: MLSConfiguration {
    var result = MLSConfiguration()
    result.sendsGREASE = true
    return result
  }

  @Test("Leaves, key packages and GroupInfos carry them, and every operation goes on")
  func group() throws {
    var group = try TestGroup(3, configuration)
    try group.update(by: 1)
    let published = try group.members[0].group.groupInfo()
    guard case .groupInfo(let groupInfo) = published else { return }
    #expect(groupInfo.extensions.contains { $0.type.isGREASE })
    let outsider = try makeClient("outsider", configuration, using: &group.random)
    let join = try MLSGroup.joinExternally(published, client: outsider, using: &group.random)
    let commit = join.commit
    for member in group.members { _ = try member.process(commit) }
    group.members.append(TestMember(outsider, join.accepted()))
    try group.checkAgreement()
    for member in group.members {
      let leaf = try #require(member.group.epoch.tree[member.group.ownLeaf])
      #expect(leaf.capabilities.cipherSuites.contains { $0.isGREASE })
      #expect(leaf.capabilities.extensions.contains { $0.isGREASE })
      #expect(leaf.capabilities.proposals.contains { $0.isGREASE })
      #expect(leaf.capabilities.credentials.contains { $0.isGREASE })
      #expect(leaf.extensions.contains { $0.type.isGREASE })
    }
    // Who sends none gets along with who does.
    let plain = try makeClient("plain", using: &group.random)
    let bundle = try plain.makeKeyPackage(lifetime: day, using: &group.random)
    let added = try group.members[0].group.add([bundle.keyPackage], at: noon, using: &group.random)
    try group.deliver(added, from: 0)
    group.members.append(
      TestMember(
        plain, try MLSGroup.join(try #require(added.welcome), keyPackages: [bundle], client: plain)))
    try group.checkAgreement()
  }

  @Test("They follow from the signing key: the same after a restart, others for others")
  func values() throws {
    var random = RandomSource(seed: 1)
    var seen: Set<CipherSuite> = []
    for number in 0..<20 {
      let client = try makeClient("\(number)", configuration, using: &random)
      let again = try MLSClient(
        cipherSuite: .x25519AES128GCM, credential: client.credential, capabilities: nil,
        configuration: configuration, signatureKey: client.signatureKey)
      #expect(again.capabilities == client.capabilities)
      let keyPackage = try client.makeKeyPackage(lifetime: day, using: &random).keyPackage
      #expect(keyPackage.extensions.contains { $0.type.isGREASE })
      let made = client.capabilities.cipherSuites.filter { $0 != client.cipherSuite }
      #expect(made.allSatisfy { $0.isGREASE })
      seen.formUnion(made)
    }
    #expect(seen.count > 3)
    let plain = try makeClient("plain", using: &random)
    #expect(plain.capabilities.cipherSuites == [.x25519AES128GCM])
  }
}

@Suite("draft-ietf-mls-extensions: key packages of last resort")
struct LastResortTests {
  @Test("One key package serves two groups; an ordinary one is not marked")
  func twice() throws {
    var random = RandomSource(seed: 1)
    let client = try makeClient("joiner", using: &random)
    let plain = try client.makeKeyPackage(lifetime: day, using: &random)
    #expect(!plain.isLastResort)
    let bundle = try client.makeKeyPackage(lifetime: day, lastResort: true, using: &random)
    #expect(bundle.isLastResort)
    guard case .keyPackage(let received) = try MLSMessage(decoding: bundle.message.encoded()) else { return }
    #expect(received.isLastResort)
    for seed: UInt64 in [2, 3] {
      var group = try TestGroup(2, seed: seed)
      let added = try group.members[0].group.add([received], at: noon, using: &group.random)
      try group.deliver(added, from: 0)
      let joined = try MLSGroup.join(
        try #require(added.welcome), keyPackages: [plain, bundle], client: client)
      #expect(joined.keyPackageReference == bundle.reference)
      group.members.append(TestMember(client, joined))
      try group.checkAgreement()
    }
  }
}
