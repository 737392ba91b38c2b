// Without @testable: what an application sees.
import PalbeCrypto
import PalbeMLS
import PalbeMLSMessages
import PalbeUnits
import PalbeWire
import Testing

@Suite("The public interface")
struct PublicAPITests {
  @Test("Two clients share a call key, change it by a commit, and talk")
  func call() throws {
    let now: UInt64 = 1_800_000_000
    let lifetime = Lifetime(notBefore: now - 3_600, notAfter: now + 86_400)
    var random = RandomSource(seed: 1)
    let alice = try MLSClient(credential: .basic(identity: Array("alice#1".utf8)), using: &random)
    let bob = try MLSClient(credential: .basic(identity: Array("bob#1".utf8)), using: &random)
    let bobsBundle = try bob.makeKeyPackage(lifetime: lifetime, using: &random)

    // Bob's key package travels as bytes.
    guard case .keyPackage(let keyPackage) = try MLSMessage(decoding: bobsBundle.message.encoded()) else {
      Issue.record("expected a key package")
      return
    }
    var alices = try MLSGroup.create(
      groupID: Array("call".utf8), client: alice, lifetime: lifetime, using: &random)
    let added = try alices.add([keyPackage], at: now, using: &random)
    try alices.mergePendingCommit(at: now)
    let welcome = try #require(added.welcome).encoded()
    var bobs = try MLSGroup.join(
      try MLSMessage(decoding: welcome), keyPackages: [bobsBundle], client: bob)
    #expect(alices.epochAuthenticator == bobs.epochAuthenticator)

    let first = try alices.exportSecret(label: "palbe call media key", context: [], length: 32)
    let same = try bobs.exportSecret(label: "palbe call media key", context: [], length: 32)
    let firstAgrees = SymmetricKey.isEqual(first, same)
    #expect(firstAgrees)

    // The call key changes: either may commit.
    let commit = try bobs.commit(at: now + 5, using: &random)
    let result = try alices.process(commit.commit.encoded(), at: now + 5)
    #expect(result == .commit(commit.effect))
    try bobs.mergePendingCommit(at: now + 5)
    let second = try alices.exportSecret(label: "palbe call media key", context: [], length: 32)
    let secondAgrees = SymmetricKey.isEqual(
      second, try bobs.exportSecret(label: "palbe call media key", context: [], length: 32))
    let changed = !SymmetricKey.isEqual(first, second)
    #expect(secondAgrees && changed)

    let message = try alices.encrypt(Array("hello".utf8), using: &random)
    guard case .application(let received) = try bobs.process(message.encoded(), at: now + 6) else {
      Issue.record("expected application data")
      return
    }
    #expect(received.data == Array("hello".utf8))
    #expect(received.sender == alices.ownLeaf)
    #expect(bobs.members.map(\.credential) == [alice.credential, bob.credential])
  }

  @Test("A client with its groups, key packages and messages of its own starts again from storage")
  func storage() throws {
    let now: UInt64 = 1_800_000_000
    let lifetime = Lifetime(notBefore: now - 3_600, notAfter: now + 86_400)
    var random = RandomSource(seed: 2)
    let alice = try MLSClient(credential: .basic(identity: [1]), using: &random)
    let storage = InMemoryMLSStorage()
    do {
      let bob = try MLSClient(credential: .basic(identity: [2]), using: &random)
      let bundle = try bob.makeKeyPackage(lifetime: lifetime, using: &random)
      var transaction = MLSTransaction()
      transaction.write(bob)
      transaction.write(bundle)
      try storage.apply(transaction)
    }
    let bob = try #require(try storage.loadClient())
    let packages = try storage.loadKeyPackages()
    var alices = try MLSGroup.create(groupID: [3], client: alice, lifetime: lifetime, using: &random)
    let added = try alices.add(packages.map(\.keyPackage), at: now, using: &random)
    try alices.mergePendingCommit(at: now)
    let message = try alices.encrypt([4, 5], using: &random)

    do {
      let joined = try MLSGroup.join(try #require(added.welcome), keyPackages: packages, client: bob)
      var bobs = try StoredGroup.insert(joined, in: storage)
      try bobs.update(
        { group throws(MLSError) in try group.process(message, at: now) },
        also: { result, transaction throws(MLSStorageError) in
          guard case .application(let data) = result else { return }
          transaction.write(MLSRecord(copying: data.data.span), .application([1], in: [3]))
        })
    }
    #expect(try storage.loadKeyPackages().isEmpty)
    #expect(storage.groups() == [[3]])
    let kept = storage.read(.application([1], in: [3]))?.withSpan { bytes in [UInt8](bytes) }
    #expect(kept == [4, 5])
    guard var bobs = try StoredGroup.load([3], client: bob, from: storage) else {
      Issue.record("not stored")
      return
    }
    let again = try bobs.update { group throws(MLSError) in try group.process(message, at: now) }
    #expect(again == .duplicate)
    let agrees = bobs.group.epochAuthenticator == alices.epochAuthenticator
    #expect(agrees)
    try bobs.delete()
    #expect(try storage.keys(in: [3]) == [.application([1], in: [3])])
  }
}
