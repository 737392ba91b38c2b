import CPalbeMallocCounter
import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeMLS

/// Members of a group in which each has committed once.
struct WarmMembers {
  var random: RandomSource
  let clients: [MLSClient]
  let groups: [TestMember]

  init(_ count: Int, suite: CipherSuite = .x25519AES128GCM, lifetime: Lifetime = day) throws {
    var random = RandomSource(seed: UInt64(count))
    var configuration = MLSConfiguration()
    configuration.handshakeFormat = .publicMessage
    var clients: [MLSClient] = []
    for place in 0..<count {
      clients.append(try makeClient("m\(place)", configuration, suite: suite, using: &random))
    }
    let warm = try WarmGroup(
      groupID: bytes("warm"), clients: clients, lifetime: lifetime, using: &random)
    self.random = random
    self.clients = clients
    groups = clients.indices.map { TestMember(clients[$0], warm.member($0)) }
  }
}

@Suite("Large groups")
struct WarmGroupTests {
  @Test(
    "every member of a warm group commits, every other processes it, a new one joins",
    arguments: [1, 2, 3, 5, 8, 13])
  func works(count: Int) throws {
    var warm = try WarmMembers(count, suite: count == 5 ? .p256AES128GCM : .x25519AES128GCM)
    for member in warm.groups {
      for (node, key) in member.group.epoch.privateKeys {
        let publicKey = try member.client.crypto.publicKey(of: key)
        #expect(member.group.epoch.tree.encryptionKey(node) == publicKey)
      }
    }
    let newcomer = try makeClient("new", suite: warm.clients[0].cipherSuite, using: &warm.random)
    for (place, committer) in warm.groups.enumerated() {
      let keyPackage = try newcomer.makeKeyPackage(lifetime: day, using: &warm.random)
      let added = try committer.group.add([keyPackage.keyPackage], at: noon, using: &warm.random)
      let joined = try MLSGroup.join(
        try #require(added.welcome), keyPackages: [keyPackage], client: newcomer)
      #expect(joined.epochNumber == committer.group.epochNumber + 1)
      committer.group.clearPendingCommit()
      let bundle = try committer.group.commit(at: noon, using: &warm.random)
      for (other, member) in warm.groups.enumerated() {
        let result = try member.process(bundle.commit)
        #expect(result == (other == place ? .ownCommit(bundle.effect) : .commit(bundle.effect)))
      }
      let authenticators = Set(warm.groups.map { $0.group.epochAuthenticator })
      #expect(authenticators.count == 1)
    }
  }

  @Test("no blank node and no unmerged leaf, one ciphertext a path node")
  func isWarm() throws {
    var warm = try WarmMembers(16)
    let committer = warm.groups[5]
    let nodes = committer.group.ratchetTree.nodes
    #expect(nodes.count == 31 && nodes.allSatisfy { $0 != nil })
    let bundle = try committer.group.commit(at: noon, using: &warm.random)
    guard case .publicMessage(let message) = bundle.commit, case .commit(let commit) = message.content.content
    else { throw WrongKind() }
    #expect(commit.path?.nodes.map(\.encryptedPathSecrets.count) == [1, 1, 1, 1])
  }

  /// A count of allocations stands for work: whatever is done for each member allocates for each.
  @Test("a commit, its processing and messages do not grow with the group but for its depth")
  func work() throws {
    func mallocs(_ count: Int) throws -> (commit: Int, process: Int, encrypt: Int, decrypt: Int) {
      var warm = try WarmMembers(count)
      let (sender, receiver) = (warm.groups[count - 1], warm.groups[0])
      var result = (commit: 0, process: 0, encrypt: 0, decrypt: 0)
      func counted<Result>(_ body: () throws -> Result) rethrows -> (Result, Int) {
        let before = palbe_malloc_count()
        let value = try body()
        return (value, Int(palbe_malloc_count() - before))
      }
      // The second round: the first fills caches.
      for _ in 0..<2 {
        let (bundle, commit) = try counted { try sender.group.commit(at: noon, using: &warm.random) }
        let (_, process) = try counted { try receiver.process(bundle.commit) }
        try sender.group.mergePendingCommit(at: noon)
        _ = try receiver.process(sender.group.encrypt(bytes("first"), using: &warm.random))
        let (message, encrypt) = try counted { try sender.group.encrypt(bytes("text"), using: &warm.random) }
        let (_, decrypt) = try counted { try receiver.process(message) }
        result = (commit, process, encrypt, decrypt)
      }
      return result
    }
    let (small, large) = (try mallocs(32), try mallocs(1_024))
    // Under a sanitizer nothing is counted.
    guard small.commit > 0 else { return }
    // Five levels more: twice as deep.
    #expect(large.commit < 2 * small.commit, "\(small.commit) and \(large.commit) allocations")
    #expect(large.process < 2 * small.process, "\(small.process) and \(large.process) allocations")
    #expect(large.encrypt == small.encrypt, "\(small.encrypt) and \(large.encrypt) allocations")
    #expect(large.decrypt == small.decrypt, "\(small.decrypt) and \(large.decrypt) allocations")
  }

  private struct WrongKind: Error {}
}
