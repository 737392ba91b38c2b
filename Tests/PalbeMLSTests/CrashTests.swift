import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeMLS

/// One kind of operation of member 0, and how the group comes to where it is possible.
struct CrashCase: CustomTestStringConvertible, Sendable {
  let name: String
  /// Gives the messages that the operation needs.
  let prepare: @Sendable (inout TestGroup) throws -> [MLSMessage]
  /// Gives what the others must hear.
  let run: @Sendable (inout MLSGroup, [MLSMessage], inout RandomSource) throws(MLSError) -> MLSMessage?

  var testDescription: String { name }

  init(
    _ name: String, _ prepare: @escaping @Sendable (inout TestGroup) throws -> [MLSMessage] = { _ in [] },
    _ run:
      @escaping @Sendable (inout MLSGroup, [MLSMessage], inout RandomSource) throws(MLSError) -> MLSMessage?
  ) {
    self.name = name
    self.prepare = prepare
    self.run = run
  }

  /// Processes the messages, in their order.
  init(processing name: String, _ prepare: @escaping @Sendable (inout TestGroup) throws -> [MLSMessage]) {
    self.init("process " + name, prepare) { group, messages, _ throws(MLSError) in
      for message in messages { _ = try group.process(message.encoded(), at: noon) }
      return nil
    }
  }

  private static func others(_ group: inout TestGroup, _ message: MLSMessage, from sender: Int) throws {
    for place in 1..<group.members.count where place != sender {
      _ = try group.members[place].process(message)
    }
  }

  private static func text(_ group: inout TestGroup, from sender: Int) throws -> MLSMessage {
    let message = try group.members[sender].group.encrypt(bytes("text"), using: &group.random)
    try others(&group, message, from: sender)
    return message
  }

  private static func commit(
    _ group: inout TestGroup, by sender: Int, _ list: [Proposal] = []
  ) throws -> MLSMessage {
    let bundle = try group.members[sender].group.commit(list, at: noon, using: &group.random)
    try others(&group, bundle.commit, from: sender)
    try group.members[sender].group.mergePendingCommit(at: noon)
    return bundle.commit
  }

  private static func keyPackage(_ random: inout RandomSource) throws(MLSError) -> KeyPackage {
    let client = try MLSClient(credential: .basic(identity: bytes("new")), using: &random)
    return try client.makeKeyPackage(lifetime: day, using: &random).keyPackage
  }

  static let all: [CrashCase] = [
    CrashCase("encrypt") { group, _, random throws(MLSError) in
      try group.encrypt(bytes("x"), using: &random)
    },
    CrashCase("commit") { group, _, random throws(MLSError) in
      try group.commit(at: noon, using: &random).commit
    },
    CrashCase("add") { group, _, random throws(MLSError) in
      try group.add([try keyPackage(&random)], at: noon, using: &random).commit
    },
    CrashCase("remove") { group, _, random throws(MLSError) in
      try group.remove([LeafIndex(2)], at: noon, using: &random).commit
    },
    CrashCase("merge") { group in
      let bundle = try group.members[0].group.commit(at: noon, using: &group.random)
      try others(&group, bundle.commit, from: 0)
      return []
    } _: { group, _, _ throws(MLSError) in
      try group.mergePendingCommit(at: noon)
      return nil
    },
    CrashCase("clear the pending commit") { group in
      _ = try group.members[0].group.commit(at: noon, using: &group.random)
      return []
    } _: { group, _, _ throws(MLSError) in
      group.clearPendingCommit()
      return nil
    },
    CrashCase("propose an add") { group, _, random throws(MLSError) in
      try group.proposeAdd(try keyPackage(&random), using: &random)
    },
    CrashCase("propose a removal") { group, _, random throws(MLSError) in
      try group.proposeRemove(LeafIndex(2), using: &random)
    },
    CrashCase("propose an update") { group, _, random throws(MLSError) in
      try group.proposeUpdate(using: &random)
    },
    CrashCase("propose a pre-shared key") { group in
      for member in group.members {
        member.group.register(PreSharedKey(id: [7], key: SymmetricKey(copying: [1, 2, 3])))
      }
      return []
    } _: { group, _, random throws(MLSError) in
      try group.proposePreSharedKey(id: [7], using: &random)
    },
    CrashCase("register a pre-shared key") { group, _, _ throws(MLSError) in
      group.register(PreSharedKey(id: [9], key: SymmetricKey(copying: [1, 2, 3])))
      return nil
    },
    CrashCase("clear the proposals") { group in
      let message = try group.members[1].group.proposeUpdate(using: &group.random)
      for place in [0, 2] { _ = try group.members[place].process(message) }
      _ = try group.members[0].group.proposeUpdate(using: &group.random)
      return []
    } _: { group, _, _ throws(MLSError) in
      group.clearPendingProposals()
      return nil
    },
    CrashCase("wipe the exporter") { group, _, _ throws(MLSError) in
      group.wipeExporterSecret()
      return nil
    },
    CrashCase(processing: "a message") { group in [try text(&group, from: 1)] },
    CrashCase(processing: "messages out of order") { group in
      let messages = [
        try text(&group, from: 1), try text(&group, from: 1), try text(&group, from: 1),
      ]
      return [messages[2], messages[0]]
    },
    CrashCase(processing: "a message passed over before") { group in
      let first = try text(&group, from: 1)
      _ = try group.members[0].process(try text(&group, from: 1))
      return [first]
    },
    CrashCase(processing: "a message of a past epoch") { group in
      let late = try text(&group, from: 1)
      try group.update(by: 2)
      return [late]
    },
    CrashCase(processing: "a proposal") { group in
      let message = try group.members[1].group.proposeUpdate(using: &group.random)
      try others(&group, message, from: 1)
      return [message]
    },
    CrashCase(processing: "a commit") { group in [try commit(&group, by: 1)] },
    CrashCase(processing: "a commit of waiting proposals") { group in
      let message = try group.members[0].group.proposeUpdate(using: &group.random)
      try others(&group, message, from: 0)
      return [try commit(&group, by: 1)]
    },
    CrashCase(processing: "a commit in place of our pending one") { group in
      _ = try group.members[0].group.commit(at: noon, using: &group.random)
      return [try commit(&group, by: 1)]
    },
    CrashCase(processing: "an echo of our pending commit") { group in
      let bundle = try group.members[0].group.commit(at: noon, using: &group.random)
      try others(&group, bundle.commit, from: 0)
      return [bundle.commit]
    },
    CrashCase(processing: "the seventh epoch") { group in
      for _ in 0..<6 { try group.update(by: 1) }
      return [try commit(&group, by: 1)]
    },
    CrashCase(processing: "our removal") { group in
      let bundle = try group.members[1].group.remove([LeafIndex(0)], at: noon, using: &group.random)
      return [bundle.commit]
    },
  ]
}

@Suite("Storage: after a failed write memory and disk are as before")
struct CrashTests {
  @Test("Item 4, fault 1646: each operation, failing at each of its writes", arguments: CrashCase.all)
  func eachWrite(item: CrashCase) throws {
    var world = try TestGroup(3, seed: 5)
    _ = try world.members[1].process(
      try world.members[2].group.encrypt([1], using: &world.random))
    let messages = try item.prepare(&world)
    let disk = InMemoryMLSStorage()
    let member = try StoredMember(world.members[0], in: disk)
    let before = member.group.group.state.description

    var failures = 0
    while true {
      let failing = FailingStorage(InMemoryMLSStorage(copying: disk))
      let tried = try StoredMember(loading: member.client, from: failing)
      #expect(tried.group.group.state.description == before)
      failing.fail(at: failures)
      var random = world.random
      let result: MLSMessage?
      do {
        result = try tried.group.update { group throws(MLSError) in try item.run(&group, messages, &random) }
      } catch StoredGroupError.storage(.failed) {
        #expect(tried.group.group.state.description == before)
        try tried.checkMemoryIsStored()
        // And it still works.
        failing.fail(at: nil)
        _ = try tried.group.update { group throws(MLSError) in try item.run(&group, messages, &random) }
        try tried.checkMemoryIsStored()
        failures += 1
        continue
      }
      #expect(tried.group.group.state.description != before)
      try tried.checkMemoryIsStored()
      failing.fail(at: nil)
      try tried.reload()
      try goOn(tried, &world, result)
      break
    }
    #expect(failures >= 2, "the writes of an operation and its revision")
  }

  /// The reloaded member and another one still understand each other.
  private func goOn(_ member: StoredMember, _ world: inout TestGroup, _ result: MLSMessage?) throws {
    guard member.group.group.isActive else { return }
    let peer = world.members[1]
    if let result { _ = try peer.process(result) }
    if member.group.group.hasPendingCommit {
      try member.group.update { group throws(MLSError) in try group.mergePendingCommit(at: noon) }
    }
    #expect(member.group.group.epochAuthenticator == peer.group.epochAuthenticator)
    let random = world.random
    let message = try member.group.update { group throws(MLSError) in
      var random = random
      return try group.encrypt(bytes("after"), using: &random)
    }
    if case .application(let data) = try peer.process(message) {
      #expect(data.data == bytes("after"))
    } else {
      Issue.record("not read")
    }
    let answer = try peer.group.encrypt(bytes("answer"), using: &world.random)
    if case .application(let data) = try member.process(answer) {
      #expect(data.data == bytes("answer"))
    } else {
      Issue.record("not read")
    }
    try member.checkMemoryIsStored()
  }

  @Test(
    "Item 4: create, join and external join, failing at each write; the used key package goes with the join")
  func inserting() throws {
    var world = try TestGroup(2, seed: 6)
    let client = try makeClient("joiner", using: &world.random)
    for lastResort in [false, true] {
      let bundle = try client.makeKeyPackage(lifetime: day, lastResort: lastResort, using: &world.random)
      let commit = try world.members[0].group.add([bundle.keyPackage], at: noon, using: &world.random)
      world.members[0].group.clearPendingCommit()
      let welcome = try #require(commit.welcome)
      let info = try world.members[0].group.groupInfo()
      for kind in 0..<3 {
        var failures = 0
        while true {
          let disk = InMemoryMLSStorage()
          var transaction = MLSTransaction()
          transaction.write(bundle)
          transaction.write(client)
          try disk.apply(transaction)
          let dump = Set(disk.dump())
          let failing = FailingStorage(disk)
          failing.fail(at: failures)
          let group: MLSGroup =
            switch kind {
            case 0:
              try MLSGroup.create(
                groupID: bytes("group"), client: client, lifetime: day, using: &world.random)
            case 1: try MLSGroup.join(welcome, keyPackages: try disk.loadKeyPackages(), client: client)
            default:
              try MLSGroup.joinExternally(info, client: client, using: &world.random).accepted()
            }
          do {
            let stored = try StoredGroup.insert(group, in: failing) { transaction throws(MLSStorageError) in
              transaction.write(MLSRecord(copying: [1, 2, 3].span), .application([5], in: bytes("group")))
            }
            let member = StoredMember(client, stored, failing)
            try member.checkMemoryIsStored()
            let left = try disk.loadKeyPackages().map(\.reference)
            #expect(left == (kind == 1 && !lastResort ? [] : [bundle.reference]))
            #expect(disk.read(.application([5], in: bytes("group"))) != nil)
            #expect(disk.groups() == [bytes("group")])
          } catch MLSStorageError.failed {
            #expect(Set(disk.dump()) == dump)
            let none = try StoredGroup.load(bytes("group"), client: client, from: disk) == nil
            #expect(none)
            failures += 1
            continue
          }
          break
        }
        #expect(failures > 5)
      }
    }
  }
}
