import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// A day in 2027.
let noon: UInt64 = 1_800_000_000
let day = Lifetime(notBefore: noon - 3_600, notAfter: noon + 86_400)

/// A membership. A class, because a group cannot be copied into a closure.
final class Owner {
  var group: MLSGroup

  init(_ group: consuming MLSGroup) { self.group = group }
}

/// A client and the key package it is added with.
struct Joiner {
  let client: MLSClient
  let keyPackage: KeyPackageBundle
}

/// Clients with identities of five digits, from a seed: keys of a bench are nobody's.
struct MemberMaker {
  static let groupID = Array("palbe-bench mls".utf8)
  var random: RandomSource
  private var born = 0
  private let configuration: MLSConfiguration

  init(seed: UInt64) {
    random = RandomSource(seed: seed)
    var configuration = MLSConfiguration()
    configuration.handshakeFormat = .publicMessage
    self.configuration = configuration
  }

  mutating func client() -> MLSClient {
    let digits = "\(born)"
    born += 1
    let identity = String(repeating: "0", count: 5 - digits.count) + digits
    return must {
      try MLSClient(
        credential: .basic(identity: Array(identity.utf8)), configuration: configuration, using: &random)
    }
  }

  mutating func joiners(_ count: Int) -> [Joiner] {
    (0..<count).map { _ in
      let client = client()
      return Joiner(
        client: client, keyPackage: must { try client.makeKeyPackage(lifetime: day, using: &random) })
    }
  }

  mutating func create(_ client: MLSClient) -> MLSGroup {
    must { try MLSGroup.create(groupID: Self.groupID, client: client, lifetime: day, using: &random) }
  }

  func join(_ welcome: [UInt8], _ joiner: Joiner) -> MLSGroup {
    must {
      try MLSGroup.join(
        MLSMessage(decoding: welcome), keyPackages: [joiner.keyPackage], client: joiner.client)
    }
  }
}
