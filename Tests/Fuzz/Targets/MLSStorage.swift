import PalbeCrypto
import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

extension FuzzTarget {
  /// The first two bytes choose a record of a stored group, the third how: the rest takes its place, or is changes
  /// (place, place, mask) to it. The group is refused, or it loads and can be used.
  static let mlsStoredGroup = FuzzTarget(name: "mls-stored-group") { bytes in
    guard bytes.count > 3, let stored = StoredPair.fresh() else { return }
    let input = Array(bytes.dropFirst(3))
    let key = stored.keys[(Int(bytes[0]) << 8 | Int(bytes[1])) % stored.keys.count]
    var value = input
    if bytes[2] & 1 == 1, let record = stored.storage.read(key) {
      value = record.withSpan { span in span.indices.map { span[$0] } }
      var index = 0
      while index + 2 < input.count {
        value[(Int(input[index]) << 8 | Int(input[index + 1])) % value.count] ^= input[index + 2]
        index += 3
      }
    }
    var transaction = MLSTransaction()
    transaction.write(MLSRecord(copying: value.span), key)
    try? stored.storage.apply(transaction)
    _ = try? stored.storage.loadClient()
    _ = try? stored.storage.loadKeyPackages()
    _ = try? stored.storage.loadPreSharedKeys()
    guard let group = try? StoredGroup.load([3], client: stored.client, from: stored.storage) else { return }
    use(group, stored)
  }

  private static func use(_ group: consuming StoredGroup, _ stored: StoredPair) {
    var group = group
    var random = RandomSource(seed: 7)
    for message in stored.messages {
      _ = try? group.update { group throws(MLSError) in try group.process(message, at: stored.now) }
    }
    _ = try? group.update { group throws(MLSError) in try group.encrypt([1], using: &random) }
    _ = try? group.update { group throws(MLSError) in try group.mergePendingCommit(at: stored.now) }
    _ = try? group.update { group throws(MLSError) in try group.commit(at: stored.now, using: &random) }
  }
}

/// A stored group of two with something of everything, and messages to it.
private struct StoredPair {
  let now: UInt64 = 1_800_000_000
  var storage = InMemoryMLSStorage()
  let client: MLSClient
  let keys: [MLSRecordKey]
  var messages: [MLSMessage] = []

  private static let made = try? StoredPair()

  /// The same each time, with a storage of its own.
  static func fresh() -> StoredPair? {
    guard var pair = made else { return nil }
    pair.storage = InMemoryMLSStorage(copying: pair.storage)
    return pair
  }

  private init() throws {
    var random = RandomSource(seed: 1)
    let now = now
    let lifetime = Lifetime(notBefore: now - 1, notAfter: now + 1)
    client = try MLSClient(credential: .basic(identity: [1]), using: &random)
    let bobsClient = try MLSClient(credential: .basic(identity: [2]), using: &random)
    let bobsPackage = try bobsClient.makeKeyPackage(lifetime: lifetime, using: &random)
    var alice = try MLSGroup.create(groupID: [3], client: client, lifetime: lifetime, using: &random)
    let bundle = try alice.add([bobsPackage.keyPackage], at: now, using: &random)
    try alice.mergePendingCommit(at: now)
    guard let welcome = bundle.welcome else { preconditionFailure("no Welcome") }
    var bob = try MLSGroup.join(welcome, keyPackages: [bobsPackage], client: bobsClient)
    messages.append(try bob.encrypt([1], using: &random))
    _ = try alice.process(try bob.encrypt([2], using: &random), at: now)
    _ = try alice.process(try bob.proposeUpdate(using: &random), at: now)
    _ = try alice.proposeUpdate(using: &random)
    messages.append(try bob.encrypt([3], using: &random))
    _ = try alice.commit(at: now, using: &random)
    messages.append(try bob.commit(at: now, using: &random).commit)
    var transaction = MLSTransaction()
    transaction.write(client)
    transaction.write(try client.makeKeyPackage(lifetime: lifetime, using: &random))
    transaction.write(PreSharedKey(id: [1], key: SymmetricKey(copying: [1, 2])))
    try storage.apply(transaction)
    _ = try StoredGroup.insert(alice, in: storage)
    let own = [MLSRecordKey.client] + storage.keys(under: MLSRecordKey(group: nil, name: []))
    keys = own + storage.keys(under: MLSRecordKey(group: [3], name: []))
  }
}
