import PalbeMLS
import PalbeMLSMessages
import PalbeUnits
import Synchronization

/// A client's storage, whose writes fail at times.
final class SimulatedDisk: MLSStorage {
  private let records = InMemoryMLSStorage()
  private let countdown = Mutex<Int?>(nil)
  private let faults: Mutex<RandomSource>

  init(seed: UInt64) { faults = Mutex(RandomSource(seed: seed)) }

  /// Once in a while: the next transaction fails at one of its first writes.
  func plot() {
    let draw = faults.withLock { $0.next() }
    guard draw % 32 == 0 else { return }
    countdown.withLock { $0 = Int(draw >> 32 % 5) }
  }

  /// Whether a failed write ends the process, or only the operation.
  func isCrash() -> Bool { faults.withLock { $0.next() % 2 == 0 } }

  func behave() { countdown.withLock { $0 = nil } }

  func read(_ key: MLSRecordKey) -> MLSRecord? { records.read(key) }

  func keys(under prefix: MLSRecordKey) -> [MLSRecordKey] { records.keys(under: prefix) }

  func groups() -> [[UInt8]] { records.groups() }

  func apply(_ transaction: MLSTransaction) throws(MLSStorageError) {
    try records.apply(transaction) { () throws(MLSStorageError) in
      let fails = countdown.withLock { left in
        guard let count = left else { return false }
        left = count - 1
        return count == 0
      }
      if fails { throw .failed(code: 5) }
    }
  }
}

/// A stored group. When a write fails, nothing happened: the member goes on from memory or is loaded again, and does
/// once more what it wanted.
final class Membership {
  private var stored: StoredGroup
  private let disk: SimulatedDisk
  private let configuration: MLSConfiguration
  private(set) var failedWrites = 0
  private(set) var restarts = 0

  /// Stores a group that begins.
  init(_ group: consuming MLSGroup, of member: SimulatedMember) throws(MLSStorageError) {
    let client = member.client
    disk = member.disk
    configuration = client.configuration
    stored = try StoredGroup.insert(group, in: member.disk, replacing: true) {
      (transaction) throws(MLSStorageError) in
      transaction.write(client)
    }
  }

  func read<Result, E: Error>(_ body: (borrowing MLSGroup) throws(E) -> Result) throws(E) -> Result {
    try body(stored.group)
  }

  func change<Result>(
    _ body: (inout MLSGroup) throws(MLSError) -> Result
  ) throws(MLSError) -> Result {
    disk.plot()
    defer { disk.behave() }
    do throws(StoredGroupError) { return try stored.update(body) } catch {
      switch error {
      case .mls(let error): throw error
      case .storage(let error):
        guard error == .failed(code: 5) else { fatalError("storage: \(error)") }
      }
    }
    failedWrites += 1
    disk.behave()
    if disk.isCrash() { restart() }
    do throws(StoredGroupError) { return try stored.update(body) } catch {
      guard case .mls(let error) = error else { fatalError("storage: \(error)") }
      throw error
    }
  }

  /// The process ended, and begins again.
  func restart() {
    let groupID = stored.group.groupID
    restarts += 1
    do throws(MLSStorageError) {
      guard let client = try disk.loadClient(configuration: configuration),
        let again = try StoredGroup.load(groupID, client: client, from: disk)
      else { fatalError("nothing is stored") }
      stored = again
    } catch { fatalError("loading: \(error)") }
  }

  var epoch: UInt64 { stored.group.epochNumber }
  var ownLeaf: LeafIndex { stored.group.ownLeaf }
  var isActive: Bool { stored.group.isActive }
}
