import PalbeMLSMessages
import PalbeWire
import Testing

@testable import PalbeMLS

/// All of a value as text, by reflection, so that a field that storage forgets shows.
func describeAll(_ value: Any, _ indent: String = "") -> String {
  switch value {
  case let secret as Secret: return Hex.encode(secret.bytes)
  case let bytes as [UInt8]: return Hex.encode(bytes)
  // A new object after every start.
  case let client as MLSClient: return Hex.encode(client.stored.withSpan { span in [UInt8](span) })
  // Its hashes are computed when they are needed.
  case let tree as RatchetTree: return Hex.encode(tree.wire.encoded())
  default: break
  }
  let mirror = Mirror(reflecting: value)
  // A lower bound that is found again, not a part of the state.
  let children = mirror.children.filter { $0.label != "oldestSkipped" }
  var lines = children.map { child in
    indent + (child.label ?? "-") + ": " + describeAll(child.value, indent + " ")
  }
  guard !lines.isEmpty else { return String(describing: value) }
  if mirror.displayStyle == .dictionary || mirror.displayStyle == .set { lines.sort() }
  return "\n" + lines.joined(separator: "\n")
}

extension GroupState {
  var description: String { describeAll(self) }

  /// The bytes of every secret in it.
  var secrets: Set<[UInt8]> {
    var found: Set<[UInt8]> = []
    func collect(_ value: Any) {
      if let secret = value as? Secret {
        found.insert(secret.bytes)
      } else if !(value is RatchetTree || value is [UInt8] || value is MLSMessage) {
        for child in Mirror(reflecting: value).children { collect(child.value) }
      }
    }
    collect(self)
    return found
  }
}

/// Secrets that must not be anywhere any more.
struct GoneSecrets {
  private var byStart: [UInt64: [[UInt8]]] = [:]
  private(set) var count = 0
  /// By the last bytes of the first eight: most places are passed over quickly.
  private var ends = [Bool](repeating: false, count: 65_536)

  mutating func insert(_ secrets: some Sequence<[UInt8]>) {
    for secret in secrets where secret.count >= 8 && secret.contains(where: { $0 != 0 }) {
      let start = secret.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
      guard byStart[start]?.contains(secret) != true else { continue }
      byStart[start, default: []].append(secret)
      ends[Int(start & 0xffff)] = true
      count += 1
    }
  }

  /// Those that are in `bytes`.
  func found(in bytes: [UInt8]) -> [[UInt8]] {
    var result: [[UInt8]] = []
    var window: UInt64 = 0
    for (index, byte) in bytes.enumerated() {
      window = window << 8 | UInt64(byte)
      guard ends[Int(window & 0xffff)], index >= 7, let candidates = byStart[window] else { continue }
      let start = index - 7
      for secret in candidates
      where start + secret.count <= bytes.count && bytes[start..<start + secret.count].elementsEqual(secret) {
        result.append(secret)
      }
    }
    return result
  }
}

/// Fails at the k-th write of the next transaction, counted from 0.
final class FailingStorage: MLSStorage, @unchecked Sendable {
  let inner: InMemoryMLSStorage
  private var writesLeft: Int?

  init(_ inner: InMemoryMLSStorage) { self.inner = inner }

  func fail(at write: Int?) { writesLeft = write }

  func read(_ key: MLSRecordKey) -> MLSRecord? { inner.read(key) }
  func keys(under prefix: MLSRecordKey) -> [MLSRecordKey] { inner.keys(under: prefix) }
  func groups() -> [[UInt8]] { inner.groups() }

  func apply(_ transaction: MLSTransaction) throws(MLSStorageError) {
    try inner.apply(transaction) { () throws(MLSStorageError) in
      guard let left = writesLeft else { return }
      if left == 0 { throw .failed(code: 13) }
      writesLeft = left - 1
    }
  }
}

/// A member whose group is stored.
final class StoredMember {
  let client: MLSClient
  let storage: any MLSStorage
  var group: StoredGroup

  init(_ client: MLSClient, _ group: consuming StoredGroup, _ storage: any MLSStorage) {
    self.client = client
    self.group = group
    self.storage = storage
  }

  /// Stores a member of a test group.
  convenience init(_ member: TestMember, in storage: any MLSStorage = InMemoryMLSStorage()) throws {
    let group = MLSGroup(client: member.client, state: member.group.state)
    self.init(member.client, try StoredGroup.insert(group, in: storage), storage)
  }

  /// What is stored, as after a start.
  convenience init(loading client: MLSClient, from storage: any MLSStorage) throws {
    self.init(client, try Self.load(bytes("group"), client, storage), storage)
  }

  private static func load(
    _ id: [UInt8], _ client: MLSClient, _ storage: any MLSStorage
  ) throws -> StoredGroup {
    guard let loaded = try StoredGroup.load(id, client: client, from: storage) else {
      throw MLSStorageError.inconsistent
    }
    return loaded
  }

  /// Starts again from what is stored.
  func reload() throws { group = try Self.load(group.group.groupID, client, storage) }

  /// What is in memory and what is stored, which must be the same.
  func checkMemoryIsStored(sourceLocation: SourceLocation = #_sourceLocation) throws {
    let stored = try GroupState(
      RecordNames(group: group.group.groupID), client: client, from: storage)
    #expect(stored?.description == group.group.state.description, sourceLocation: sourceLocation)
  }

  @discardableResult
  func process(_ message: MLSMessage, at time: UInt64 = noon) throws -> ProcessedMessage {
    try group.update { group throws(MLSError) in try group.process(message.encoded(), at: time) }
  }
}
