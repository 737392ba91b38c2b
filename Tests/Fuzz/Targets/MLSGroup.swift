import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

extension FuzzTarget {
  /// The first byte chooses: raw bytes, or changes (place, place, mask) to a genuine application message, commit or
  /// proposal, go to a live group. A changed message must be refused, and the genuine one accepted after it.
  static let mlsProcess = FuzzTarget(name: "mls-process") { bytes in
    guard let choice = bytes.first else { return }
    let input = Array(bytes.dropFirst())
    guard let pair = try? MLSPair(isPublic: choice & 4 != 0) else { preconditionFailure("no group") }
    let genuine: MLSMessage?
    switch choice & 3 {
    case 1: genuine = try? pair.alice.encrypt([1, 2, 3], using: &pair.random)
    case 2: genuine = try? pair.alice.commit(at: pair.now, using: &pair.random).commit
    case 3: genuine = try? pair.alice.proposeUpdate(using: &pair.random)
    default: genuine = nil
    }
    guard let genuine else {
      _ = try? pair.bob.process(input, at: pair.now)
      return
    }
    let original = genuine.encoded()
    let changed = mutate(original, by: input)
    if changed != original {
      precondition((try? pair.bob.process(changed, at: pair.now)) == nil, "a changed message was accepted")
    }
    precondition((try? pair.bob.process(original, at: pair.now)) != nil, "the genuine message was refused")
  }

  /// Changes (place, place, mask) to a genuine Welcome and to its tree: refused, or as genuine.
  static let mlsJoin = FuzzTarget(name: "mls-join") { bytes in
    guard let choice = bytes.first else { return }
    let input = Array(bytes.dropFirst())
    guard let pair = try? MLSPair(isPublic: false) else { preconditionFailure("no group") }
    let welcome = pair.welcome.encoded()
    let tree = pair.alice.ratchetTree.encoded()
    let changedWelcome = choice & 1 == 0 ? mutate(welcome, by: input) : welcome
    let changedTree = choice & 1 == 1 ? mutate(tree, by: input) : tree
    guard let message = try? MLSMessage(decoding: changedWelcome),
      let wire = try? RatchetTreeExtension(decoding: changedTree)
    else { return }
    let group = try? MLSGroup.join(
      message, keyPackages: [pair.keyPackage], client: pair.bobsClient, ratchetTree: wire)
    if let group { precondition(group.epochAuthenticator == pair.alice.epochAuthenticator) }
  }

  private static func mutate(_ bytes: [UInt8], by changes: [UInt8]) -> [UInt8] {
    var result = bytes
    var index = 0
    while index + 2 < changes.count {
      let place = (Int(changes[index]) << 8 | Int(changes[index + 1])) % result.count
      result[place] ^= changes[index + 2]
      index += 3
    }
    return result
  }
}

/// A group of two.
private final class MLSPair {
  let now: UInt64
  var random: RandomSource
  var alice: MLSGroup
  var bob: MLSGroup
  let bobsClient: MLSClient
  let keyPackage: KeyPackageBundle
  let welcome: MLSMessage

  init(isPublic: Bool) throws {
    let now: UInt64 = 1_800_000_000
    var random = RandomSource(seed: 1)
    let lifetime = Lifetime(notBefore: now - 1, notAfter: now + 1)
    var configuration = MLSConfiguration()
    configuration.handshakeFormat = isPublic ? .publicMessage : .privateMessage
    configuration.ratchetTreeInWelcome = false
    let client = try MLSClient(
      credential: .basic(identity: [1]), configuration: configuration, using: &random)
    let bobsClient = try MLSClient(
      credential: .basic(identity: [2]), configuration: configuration, using: &random)
    let keyPackage = try bobsClient.makeKeyPackage(lifetime: lifetime, using: &random)
    var alice = try MLSGroup.create(groupID: [3], client: client, lifetime: lifetime, using: &random)
    let bundle = try alice.add([keyPackage.keyPackage], at: now, using: &random)
    try alice.mergePendingCommit(at: now)
    guard let welcome = bundle.welcome else { preconditionFailure("no Welcome") }
    let bob = try MLSGroup.join(
      welcome, keyPackages: [keyPackage], client: bobsClient, ratchetTree: bundle.ratchetTree)
    self.alice = alice
    self.bob = bob
    self.bobsClient = bobsClient
    self.keyPackage = keyPackage
    self.now = now
    self.welcome = welcome
    self.random = random
  }
}
