import PalbeCrypto
import PalbeEventLoop
import PalbeMLS
import PalbeMLSMessages
import PalbeUnits
import PalbeWire

/// The MLS group of a call's two participants (RFC 9420), from which the call keys come.
///
/// Messages travel between the two as bytes, as they would through a delivery server.
struct CallGroup: ~Copyable {
  /// The key that both sides hold after a change.
  enum KeyError: Error, Equatable, CustomStringConvertible {
    case sidesDiffer
    case unexpectedMessage
    var description: String {
      switch self {
      case .sidesDiffer: "the two sides of the MLS group have different call keys"
      case .unexpectedMessage: "the MLS group sent a message of another kind than was due"
      }
    }
  }

  private var anna: MLSGroup
  private var ben: MLSGroup
  private var random: RandomSource
  private var time: UInt64

  private init(
    anna: consuming MLSGroup, ben: consuming MLSGroup, random: RandomSource, time: UInt64
  ) {
    self.anna = anna
    self.ben = ben
    self.random = random
    self.time = time
  }

  /// Makes a group with the first participant in it and adds the second: key package, Add commit, Welcome.
  static func make(first: String, second: String) throws -> CallGroup {
    var random = SystemRandom.source()
    let time = UInt64(max(0, WallClock.unixNanoseconds()) / 1_000_000_000)
    let lifetime = Lifetime(notBefore: time - 3_600, notAfter: time + 86_400)
    let firstClient = try MLSClient(credential: .basic(identity: Array(first.utf8)), using: &random)
    let secondClient = try MLSClient(credential: .basic(identity: Array(second.utf8)), using: &random)

    let bundle = try secondClient.makeKeyPackage(lifetime: lifetime, using: &random)
    guard case .keyPackage(let keyPackage) = try MLSMessage(decoding: bundle.message.encoded()) else {
      throw KeyError.unexpectedMessage
    }
    var anna = try MLSGroup.create(
      groupID: random.bytes(16), client: firstClient, lifetime: lifetime, using: &random)
    let added = try anna.add([keyPackage], at: time, using: &random)
    try anna.mergePendingCommit(at: time)
    guard let welcome = added.welcome?.encoded() else { throw KeyError.unexpectedMessage }
    let ben = try MLSGroup.join(
      try MLSMessage(decoding: welcome), keyPackages: [bundle], client: secondClient)
    return CallGroup(anna: anna, ben: ben, random: random, time: time)
  }

  /// The group's epoch: 1 after the second participant was added.
  var epoch: UInt64 { anna.epochNumber }

  /// The call key of this epoch, 32 bytes. Throws when the two sides disagree.
  func callKey() throws -> [UInt8] {
    let label = "palbe call media key"
    let first = try anna.exportSecret(label: label, context: [], length: 32)
    let second = try ben.exportSecret(label: label, context: [], length: 32)
    guard SymmetricKey.isEqual(first, second) else { throw KeyError.sidesDiffer }
    let span = first.span
    return span.indices.map { span[$0] }
  }

  /// The first participant commits a fresh path; the second processes it. The epoch is one more afterwards.
  mutating func rekey() throws {
    time += 1
    let commit = try anna.commit(at: time, using: &random)
    _ = try ben.process(commit.commit.encoded(), at: time)
    try anna.mergePendingCommit(at: time)
  }
}
