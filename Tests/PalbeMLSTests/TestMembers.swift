import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeMLS

/// Noon of a day in 2027, for lifetimes.
let noon: UInt64 = 1_800_000_000
let day = Lifetime(notBefore: noon - 3_600, notAfter: noon + 86_400)

/// A member under test. A class, because a group cannot be copied into an array.
final class TestMember {
  let client: MLSClient
  var group: MLSGroup

  init(_ client: MLSClient, _ group: consuming MLSGroup) {
    self.client = client
    self.group = group
  }

  func process(_ message: MLSMessage, at time: UInt64 = noon) throws -> ProcessedMessage {
    // Through the bytes, as over a network.
    try group.process(message.encoded(), at: time)
  }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

func makeClient(
  _ name: String, _ configuration: MLSConfiguration = MLSConfiguration(),
  suite: CipherSuite = .x25519AES128GCM, using random: inout RandomSource
) throws -> MLSClient {
  try MLSClient(
    cipherSuite: suite, credential: .basic(identity: bytes(name)), configuration: configuration,
    using: &random)
}

/// A group under test: every member hears every message.
struct TestGroup {
  var random: RandomSource
  var members: [TestMember]
  let configuration: MLSConfiguration
  let suite: CipherSuite
  private var born = 1

  /// `count` members, all but the first added by one commit.
  init(
    _ count: Int, seed: UInt64 = 1, suite: CipherSuite = .x25519AES128GCM,
    _ configuration: MLSConfiguration = MLSConfiguration()
  ) throws {
    random = RandomSource(seed: seed)
    self.configuration = configuration
    self.suite = suite
    let client = try makeClient("member 0", configuration, suite: suite, using: &random)
    let group = try MLSGroup.create(
      groupID: bytes("group"), client: client, lifetime: day, using: &random)
    members = [TestMember(client, group)]
    if count > 1 { try add(count - 1, by: 0) }
  }

  mutating func add(_ count: Int, by committer: Int, path: Bool = true) throws {
    var joiners: [(MLSClient, KeyPackageBundle)] = []
    for _ in 0..<count {
      let client = try makeClient("member \(born)", configuration, suite: suite, using: &random)
      born += 1
      joiners.append((client, try client.makeKeyPackage(lifetime: day, using: &random)))
    }
    let bundle = try members[committer].group.add(
      joiners.map(\.1.keyPackage), path: path, at: noon, using: &random)
    try deliver(bundle, from: committer)
    let welcome = try #require(bundle.welcome)
    for (client, keyPackage) in joiners {
      let received = try MLSMessage(decoding: welcome.encoded())
      let group = try MLSGroup.join(
        received, keyPackages: [keyPackage], client: client, ratchetTree: bundle.ratchetTree)
      #expect(group.keyPackageReference == keyPackage.reference)
      members.append(TestMember(client, group))
    }
  }

  /// Everybody processes a commit; the committer sees its own come back.
  func deliver(_ bundle: CommitBundle, from committer: Int) throws {
    for (index, member) in members.enumerated() {
      let result = try member.process(bundle.commit)
      if index == committer {
        #expect(result == .ownCommit(bundle.effect))
      } else {
        #expect(result == .commit(bundle.effect))
      }
    }
  }

  mutating func update(by committer: Int) throws {
    try deliver(try members[committer].group.commit(at: noon, using: &random), from: committer)
  }

  /// Removes members by place; they see it and are gone from the list.
  mutating func remove(_ places: [Int], by committer: Int) throws {
    let leaves = places.map { members[$0].group.ownLeaf }
    let bundle = try members[committer].group.remove(leaves, at: noon, using: &random)
    for (index, member) in members.enumerated() where index != committer {
      let result = try member.process(bundle.commit)
      #expect(result == (places.contains(index) ? .removed(bundle.effect) : .commit(bundle.effect)))
    }
    try members[committer].group.mergePendingCommit(at: noon)
    members = members.enumerated().filter { !places.contains($0.offset) }.map(\.element)
  }

  /// All members agree on everything that RFC 9420 says they share, and can talk to each other.
  mutating func checkAgreement(talk: Bool = true) throws {
    let first = members[0]
    let exported = try first.group.exportSecret(label: "agreement", context: [1, 2], length: 32)
    for member in members.dropFirst() {
      #expect(member.group.context == first.group.context)
      #expect(member.group.epochAuthenticator == first.group.epochAuthenticator)
      let theirs = try member.group.exportSecret(label: "agreement", context: [1, 2], length: 32)
      let same = SymmetricKey.isEqual(exported, theirs)
      #expect(same)
      #expect(member.group.members == first.group.members)
    }
    #expect(first.group.members.count == members.count)
    guard talk else { return }
    for (index, sender) in members.enumerated() {
      let data = bytes("hello from \(index)")
      let message = try sender.group.encrypt(data, authenticatedData: [9], using: &random)
      for (other, receiver) in members.enumerated() {
        let result = try receiver.process(message)
        if other == index {
          #expect(result == .own)
        } else {
          #expect(
            result
              == .application(
                ApplicationMessage(
                  sender: sender.group.ownLeaf, epoch: sender.group.epochNumber, data: data,
                  authenticatedData: [9])))
        }
      }
    }
  }

  /// Every private key a member holds belongs to the public key in its tree.
  func checkPrivateKeys() throws {
    for member in members {
      let epoch = member.group.epoch
      for (node, key) in epoch.privateKeys {
        let publicKey = try epoch.tree.crypto.publicKey(of: key)
        #expect(epoch.tree.encryptionKey(node) == publicKey)
      }
    }
  }
}
