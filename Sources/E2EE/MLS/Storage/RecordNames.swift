import PalbeMLSMessages
import PalbeWire

/// The names of the engine's records.
///
///     group nil   1              the client       2 reference   a key package     3 id   a pre-shared key
///     group       1              core             2             revision          3      pre-shared keys
///                 4              own commit (old)   5      pending commit    6 i    a proposal
///                 7              client with a new signing key          8 i    a page of what was processed
///                 16 epoch 1     its secrets      16 epoch 2    message keys      16 epoch 3   public tree
///                 16 epoch 4 n   a secret tree node             16 epoch 5 l t    a sender's ratchet
///                 16 epoch 6 l t g   the key of a message not seen yet
///
/// Epochs are named by number and branch: those of a pending commit stay where they are when it is merged, and those
/// of a past epoch when the next begins. Only what must be forgotten is erased.
struct RecordNames {
  let group: [UInt8]

  private func key(_ name: [UInt8]) -> MLSRecordKey { MLSRecordKey(group: group, name: name) }

  var core: MLSRecordKey { key([1]) }
  var revision: MLSRecordKey { key([2]) }
  var preSharedKeys: MLSRecordKey { key([3]) }
  var ownCommit: MLSRecordKey { key([4]) }
  var pending: MLSRecordKey { key([5]) }
  var proposals: MLSRecordKey { key([6]) }
  var newClient: MLSRecordKey { key([7]) }
  var seen: MLSRecordKey { key([8]) }
  var epochs: MLSRecordKey { key([16]) }
  /// Everything of the engine's in the group.
  var all: [MLSRecordKey] {
    [core, revision, preSharedKeys, ownCommit, pending, proposals, newClient, seen, epochs]
  }

  /// The record that a page of processed messages takes: pages are written round and round.
  func seen(_ page: SeenMessages.Page) -> MLSRecordKey {
    key(seen.name + [UInt8(page.number % UInt64(SeenMessages.pageLimit))])
  }

  func proposal(_ place: Int) -> MLSRecordKey {
    var name = ByteWriter(capacity: 5)
    name.append(proposals.name)
    name.uint32(UInt32(place))
    return key(name.bytes)
  }

  func epoch(_ id: EpochID) -> EpochNames { EpochNames(group: group, id: id) }

  struct EpochNames {
    let group: [UInt8]
    private let prefix: [UInt8]

    init(group: [UInt8], id: EpochID) {
      self.group = group
      var name = ByteWriter(capacity: 17)
      name.uint8(16)
      name.uint64(id.number)
      name.uint64(id.branch)
      prefix = name.bytes
    }

    private func key(_ part: UInt8, _ more: (inout ByteWriter) -> Void = { _ in }) -> MLSRecordKey {
      var name = ByteWriter(capacity: prefix.count + 10)
      name.append(prefix)
      name.uint8(part)
      more(&name)
      return MLSRecordKey(group: group, name: name.bytes)
    }

    var all: MLSRecordKey { MLSRecordKey(group: group, name: prefix) }
    var secrets: MLSRecordKey { key(1) }
    var messageKeys: MLSRecordKey { key(2) }
    var tree: MLSRecordKey { key(3) }
    var nodes: MLSRecordKey { key(4) }
    var ratchets: MLSRecordKey { key(5) }
    var skipped: MLSRecordKey { key(6) }

    func node(_ index: NodeIndex) -> MLSRecordKey { key(4) { $0.uint32(index.value) } }

    func ratchet(_ id: RatchetID) -> MLSRecordKey { key(5) { id.encode(into: &$0) } }

    func skipped(_ id: RatchetID, _ generation: UInt32) -> MLSRecordKey {
      key(6) {
        id.encode(into: &$0)
        $0.uint32(generation)
      }
    }

    /// What follows the part's number in a key of this epoch.
    func index(of key: MLSRecordKey) -> [UInt8] { Array(key.name.dropFirst(prefix.count + 1)) }
  }
}

/// One of a sender's two ratchets.
struct RatchetID: Hashable, MLSCodable {
  let leaf: LeafIndex
  let isApplication: Bool

  init(leaf: LeafIndex, isApplication: Bool) {
    self.leaf = leaf
    self.isApplication = isApplication
  }

  init(from reader: inout ByteReader) throws(WireError) {
    leaf = try LeafIndex(from: &reader)
    isApplication = try reader.flag()
  }

  func encode(into writer: inout ByteWriter) {
    leaf.encode(into: &writer)
    writer.uint8(isApplication ? 1 : 0)
  }
}

extension MLSRecordKey {
  /// The client's identity and signing key.
  public static let client = MLSRecordKey(group: nil, name: [1])

  /// A published key package and its private keys, by its reference.
  public static func keyPackage(_ reference: [UInt8]) -> MLSRecordKey {
    MLSRecordKey(group: nil, name: keyPackages.name + reference)
  }

  /// A pre-shared key.
  public static func preSharedKey(_ id: [UInt8]) -> MLSRecordKey {
    MLSRecordKey(group: nil, name: preSharedKeys.name + id)
  }

  static let keyPackages = MLSRecordKey(group: nil, name: [2])
  static let preSharedKeys = MLSRecordKey(group: nil, name: [3])
}
