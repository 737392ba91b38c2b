import PalbeMLSMessages
import PalbeUnits

@testable import PalbeMLS

/// The fuzzer's bytes as a program: each choice takes one, and after the last all choices are 0.
struct Choices {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

  mutating func below(_ limit: Int) -> Int { limit <= 1 ? 0 : Int(byte()) % limit }

  mutating func flag() -> Bool { byte() & 1 == 1 }

  mutating func word() -> UInt32 { (0..<4).reduce(0) { value, _ in value << 8 | UInt32(byte()) } }

  /// As many bytes as the first says.
  mutating func bytes() -> [UInt8] {
    let count = Int(byte())
    return (0..<count).map { _ in byte() }
  }

  mutating func pick<T>(_ list: [T]) -> T { list[below(list.count)] }

  /// Changes some bytes, or the length.
  mutating func change(_ bytes: [UInt8]) -> [UInt8] {
    var result = bytes
    switch below(6) {
    case 0: result = []
    case 1: result = Array(result.prefix(Int(byte())))
    case 2: result += self.bytes()
    case 3: result = [UInt8](repeating: byte(), count: bytes.count)
    case 4: result = self.bytes()
    default:
      if !result.isEmpty { result[Int(word() % UInt32(result.count))] ^= max(1, byte()) }
    }
    return result
  }
}

extension MLSGroup {
  /// Another member with the same state, so that every input begins from the same group.
  func copy() -> MLSGroup {
    var result = MLSGroup(client: client, epoch: epoch)
    result.state = state
    return result
  }
}

/// A group in the middle of its life: seven members, one blank leaf, an unmerged leaf, blank and filled parents.
///
/// Mallory, a member, holds real keys and plays by no rule.
final class MLSWorld: Sendable {
  static let now: UInt64 = 1_800_000_000
  static let lifetime = Lifetime(notBefore: now - 3_600, notAfter: now + 86_400)
  static let shared: MLSWorld = {
    guard let world = try? MLSWorld() else { preconditionFailure("no world") }
    return world
  }()

  let mallory: MLSGroup
  let victim: MLSGroup
  let honest: MLSGroup
  /// All clients by leaf; Mallory knows their keys where that is worse.
  let clients: [MLSClient]
  let outsider: MLSClient
  let outsidersBundle: KeyPackageBundle
  /// Mallory's proposals that the victim holds.
  let references: [ProposalRef]
  let preSharedKey: PreSharedKey

  private init() throws {
    var random = RandomSource(seed: 1)
    var configuration = MLSConfiguration()
    configuration.handshakeFormat = .publicMessage
    var clients: [MLSClient] = []
    for number in UInt8(0)..<8 {
      clients.append(
        try MLSClient(
          credential: .basic(identity: [number]), configuration: configuration, using: &random))
    }
    var founder = try MLSGroup.create(
      groupID: [1, 2], client: clients[0], lifetime: Self.lifetime, using: &random)
    var bundles: [KeyPackageBundle] = []
    for client in clients.dropFirst() {
      bundles.append(try client.makeKeyPackage(lifetime: Self.lifetime, using: &random))
    }
    let now = Self.now
    let first = try founder.add(bundles.prefix(6).map(\.keyPackage), at: now, using: &random)
    try founder.mergePendingCommit(at: now)
    guard let welcome = first.welcome else { preconditionFailure("no Welcome") }
    var mallory = try MLSGroup.join(welcome, keyPackages: [bundles[0]], client: clients[1])
    var victim = try MLSGroup.join(welcome, keyPackages: [bundles[1]], client: clients[2])
    var honest = try MLSGroup.join(welcome, keyPackages: [bundles[4]], client: clients[5])
    // Everybody has a path; then one leaves, and one comes without a path.
    let path = try honest.commit(at: now, using: &random).commit
    try honest.mergePendingCommit(at: now)
    _ = try mallory.process(path, at: now)
    _ = try victim.process(path, at: now)
    let removal = try victim.remove([LeafIndex(3), LeafIndex(4)], at: now, using: &random).commit
    try victim.mergePendingCommit(at: now)
    _ = try mallory.process(removal, at: now)
    _ = try honest.process(removal, at: now)
    let late = try mallory.add([bundles[6].keyPackage], path: false, at: now, using: &random).commit
    try mallory.mergePendingCommit(at: now)
    _ = try victim.process(late, at: now)
    _ = try honest.process(late, at: now)

    let proposals = [
      try mallory.proposeUpdate(using: &random), try mallory.proposeRemove(LeafIndex(6), using: &random),
    ]
    var references: [ProposalRef] = []
    for proposal in proposals {
      if case .proposal(_, let reference, _) = try victim.process(proposal, at: now) {
        references.append(reference)
      }
      _ = try honest.process(proposal, at: now)
    }
    let key = PreSharedKey(id: [5], key: SymmetricKeyOfZeros.make())
    mallory.register(key)
    victim.register(key)
    honest.register(key)
    self.mallory = mallory
    self.victim = victim
    self.honest = honest
    self.clients = clients
    self.references = references
    preSharedKey = key
    outsider = try MLSClient(credential: .basic(identity: [99]), configuration: configuration, using: &random)
    outsidersBundle = try outsider.makeKeyPackage(lifetime: Self.lifetime, using: &random)
  }
}
