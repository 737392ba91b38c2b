import PalbeMLSMessages
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMLS

@Suite("RFC 9420 §12.1, §13: values that only applications know")
struct ApplicationProposalTests {
  private static let light = ProposalType(rawValue: 0xf001)
  private static let heavy = ProposalType(rawValue: 0xf002)

  private var configuration: MLSConfiguration {
    var result = MLSConfiguration()
    result.applicationProposals = [
      ApplicationProposalType(Self.light, requiresPath: false, isForExternalSenders: true),
      ApplicationProposalType(Self.heavy),
    ]
    return result
  }

  @Test(
    "§12.1: proposals of an application's own type travel by value and by reference, and come out in order")
  func carried() throws {
    var group = try TestGroup(3, configuration)
    let proposed = Proposal.application(type: Self.light, data: [1, 2])
    let message = try group.members[1].group.propose(proposed, using: &group.random)
    for index in [0, 2] {
      guard case .proposal(let received, _, let sender) = try group.members[index].process(message) else {
        Issue.record("expected a proposal")
        return
      }
      #expect(received == proposed && sender == .member(LeafIndex(1)))
    }
    let bundle = try group.members[0].group.commit(
      [.application(type: Self.light, data: [])], path: false, at: noon, using: &group.random)
    #expect(!bundle.effect.hasPath)
    #expect(
      bundle.effect.applicationProposals == [
        ApplicationProposal(type: Self.light, data: [1, 2], sender: .member(LeafIndex(1))),
        ApplicationProposal(type: Self.light, data: [], sender: .member(LeafIndex(0))),
      ])
    try group.deliver(bundle, from: 0)
    let withPath = try group.members[2].group.commit(
      [.application(type: Self.heavy, data: [9])], path: false, at: noon, using: &group.random)
    #expect(withPath.effect.hasPath)
    try group.deliver(withPath, from: 2)
    try group.checkAgreement()
  }

  // Rules: V402 V418 V421
  @Test("§12.2: a type that a member does not list, or nobody declared, is refused")
  func refused() throws {
    var group = try TestGroup(2, configuration)
    let undeclared = ProposalType(rawValue: 0xf003)
    for type in [undeclared, .add, ProposalType(rawValue: 0)] {
      #expect(throws: MLSError.proposals(.typeNotSupported(type))) {
        _ = try group.members[0].group.propose(.application(type: type, data: []), using: &group.random)
      }
    }
    // Who comes with the commit need not know it (it comes out of the Welcome in the next epoch) …
    let plain = try makeClient("plain", using: &group.random)
    let keyPackage = try plain.makeKeyPackage(lifetime: day, using: &group.random)
    let proposal = Proposal.application(type: Self.light, data: [])
    let bundle = try group.members[0].group.commit(
      [proposal, .add(keyPackage.keyPackage)], at: noon, using: &group.random)
    try group.deliver(bundle, from: 0)
    group.members.append(
      TestMember(
        plain, try MLSGroup.join(try #require(bundle.welcome), keyPackages: [keyPackage], client: plain)))
    try group.checkAgreement()
    // … but from then on there are none, until it goes.
    #expect(throws: MLSError.proposals(.typeNotSupported(Self.light))) {
      _ = try group.members[0].group.commit([proposal], at: noon, using: &group.random)
    }
    let last = try group.members[0].group.commit(
      [proposal, .remove(LeafIndex(2))], at: noon, using: &group.random)
    #expect(try group.members[1].process(last.commit) == .commit(last.effect))
    #expect(throws: MLSError.proposals(.typeNotSupported(Self.light))) {
      _ = try group.members[2].process(last.commit)
    }
    try ProposalRules.check(
      proposal, from: .external(index: 0), declared: configuration.applicationProposals)
    #expect(throws: MLSError.proposals(.notAllowedForSender(Self.heavy))) {
      try ProposalRules.check(
        .application(type: Self.heavy, data: []), from: .external(index: 0),
        declared: configuration.applicationProposals)
    }
    #expect(throws: MLSError.proposals(.notAllowedInExternalCommit(Self.light))) {
      try ProposalRules.check(
        proposal, from: .newMemberCommit, declared: configuration.applicationProposals)
    }
  }

  @Test("§12.1: on the wire such a proposal is a type and one opaque<V>; type 0 is none")
  func wire() throws {
    let proposal = Proposal.application(type: Self.light, data: [7, 8])
    #expect(proposal.encoded() == [0xf0, 0x01, 2, 7, 8])
    #expect(try Proposal(decoding: proposal.encoded()) == proposal)
    #expect(throws: WireError.invalid(field: "proposal_type", value: 0)) {
      try Proposal(decoding: [0, 0, 0])
    }
    for count in 0..<5 {
      #expect(throws: WireError.self) { try Proposal(decoding: Array(proposal.encoded().prefix(count))) }
    }
  }

  // Rules: V106 V107 V111
  @Test(
    "§7.2, §11.1, §13: unknown capabilities and extensions keep their bytes; unknown requirements are refused"
  )
  func unknownValues() throws {
    let unknown = ExtensionType(rawValue: 0xf0f1)
    var configuration = configuration
    configuration.extensionTypes = [unknown]
    configuration.leafExtensions = [
      Extension(type: .applicationID, data: [4, 5]), Extension(type: unknown, data: [6]),
    ]
    var group = try TestGroup(2, configuration)
    let inGroup = Extension(type: unknown, data: [0xff, 0])
    let required = Extension(
      type: .requiredCapabilities,
      data: RequiredCapabilities(extensions: [unknown], proposals: [Self.heavy], credentials: [.x509])
        .encoded())
    try group.deliver(
      try group.members[0].group.commit(
        [.groupContextExtensions([inGroup, required])], at: noon, using: &group.random), from: 0)
    #expect(group.members[1].group.context.extensions == [inGroup, required])
    try group.add(1, by: 1)
    try group.checkAgreement()
    let leaf = try #require(group.members[0].group.epoch.tree[LeafIndex(2)])
    #expect(leaf.extensions == configuration.leafExtensions)
    #expect(leaf.capabilities.extensions == [unknown])
    #expect(leaf.capabilities.proposals == [Self.light, Self.heavy])
    #expect(try LeafNode(decoding: leaf.encoded()) == leaf)

    let plain = try makeClient("plain", using: &group.random)
    let keyPackage = try plain.makeKeyPackage(lifetime: day, using: &group.random).keyPackage
    #expect(throws: MLSError.leafNode(.groupExtensionNotSupported(unknown))) {
      _ = try group.members[0].group.add([keyPackage], at: noon, using: &group.random)
    }
    for (required, error) in [
      (RequiredCapabilities(extensions: [unknown]), LeafNodeError.requiredExtensionNotSupported(unknown)),
      (RequiredCapabilities(proposals: [Self.heavy]), .requiredProposalNotSupported(Self.heavy)),
    ] {
      let list = [Extension(type: .requiredCapabilities, data: required.encoded())]
      #expect(throws: MLSError.leafNode(error)) {
        _ = try MLSGroup.create(
          groupID: [1], client: plain, lifetime: day, extensions: list, using: &group.random)
      }
    }
  }
}
