import Glibc
import PalbeBackendCore
import PalbeEventLoop
import PalbeUnits
import Synchronization

/// The bytes of all blobs: uploads piece by piece that can go on later, downloads by pieces, on threads of their own.
///
///     let store = try BlobStore(folder: "blobs")
///     store.delete(ids)                       // what the backend has let go
///     store.stop()
///
/// All work on one blob is done by one thread in the order in which it was asked for. Whether a blob may be written or read
/// is not known here.
package final class BlobStore: Sendable {
  /// What the store takes.
  package struct Settings: Sendable {
    /// Bytes of the medium that uploads leave for the rest of the server.
    package var reservedByteCount: Int64 = 256 << 20
    /// Threads.
    package var threadCount = 4
    /// The defaults.
    package init() {}
  }

  /// Totals since the start, and what is there.
  package struct Counts: Sendable, Equatable {
    package var receivedByteCount: UInt64 = 0
    package var sentByteCount: UInt64 = 0
    package var completedCount: UInt64 = 0
    package var deletedCount: UInt64 = 0
    package var faultCount: UInt64 = 0
    /// Whole blobs that are there, and their bytes.
    package var storedCount: Int64 = 0
    package var storedByteCount: Int64 = 0
    package var openUploadCount: Int64 = 0
    package var openDownloadCount: Int64 = 0
  }

  package let files: BlobFiles
  private let reserved: Atomic<Int64>
  private let threads: [JobThread]
  /// Who writes a blob now.
  private let uploads = Mutex<[BlobID: BlobSink]>([:])
  private let totals: Mutex<Counts>
  /// How many hold deletions back, and what is to be deleted when they let go.
  private let held = Mutex<(count: Int, ids: [BlobID])>((0, []))

  /// Files of no blob that were found at the start.
  package let orphanCount: Int

  private let faults: FaultLog?
  private static let releasedLimit = 16_384
  /// Blobs that the backend has let go, the newest of them.
  private let released = Mutex<(ids: Set<BlobID>, order: [BlobID])>(([], []))

  /// Opens the folder.
  /// - Parameter known: the blobs of the backend; bytes of others, whose deletion a crash has prevented, are removed. Nil
  ///   keeps them all.
  package convenience init(
    folder: String, settings: Settings = Settings(), knowing known: Set<BlobID>? = nil,
    faults: FaultLog? = nil
  ) throws {
    try self.init(
      files: try BlobFiles(folder: folder), settings: settings, knowing: known, faults: faults)
  }

  init(
    files: BlobFiles, settings: Settings, knowing known: Set<BlobID>? = nil, faults: FaultLog? = nil
  ) throws {
    self.files = files
    self.faults = faults
    reserved = Atomic(settings.reservedByteCount)
    var counts = Counts()
    var orphanCount = 0
    // One walk over all of them, of which there may be millions.
    for (id, state) in try files.all() {
      if let known, !known.contains(id) {
        orphanCount += 1
        do throws(BlobFault) {
          try files.remove(id)
          counts.deletedCount += 1
          continue
        } catch { counts.faultCount += 1 }
      }
      guard case .whole(let count) = state else { continue }
      counts.storedCount += 1
      counts.storedByteCount += count
    }
    self.orphanCount = orphanCount
    totals = Mutex(counts)
    var threads: [JobThread] = []
    for number in 0..<max(1, settings.threadCount) { threads.append(try JobThread(name: "blobs-\(number)")) }
    self.threads = threads
  }

  /// Does what is left and ends.
  package func stop() {
    for thread in threads { thread.stop() }
  }

  /// What was counted.
  package var counts: Counts { totals.withLock { $0 } }

  func count(_ change: (inout Counts) -> Void) { totals.withLock { change(&$0) } }

  /// Whether nothing is there of a blob that was not let go lately: of one that was, an address may still be in somebody's
  /// hands.
  func isLost(_ id: BlobID) -> Bool {
    (try? files.state(of: id)) == BlobFiles.State.none && !released.withLock { $0.ids.contains(id) }
  }

  /// Counts and tells what the disk has refused.
  func note(_ fault: BlobFault) {
    if case .offset = fault { return }
    count { $0.faultCount += 1 }
    if let fault = fault.storeFault { faults?.note(fault, of: .attachments) }
  }

  /// Bytes of the medium that uploads leave for the rest of the server; another number counts for what is written from now on.
  package var reservedByteCount: Int64 {
    get { reserved.load(ordering: .relaxed) }
    set { reserved.store(newValue, ordering: .relaxed) }
  }

  /// Does something after all that was asked for this blob before.
  func run(for id: BlobID, _ job: @escaping @Sendable () -> Void) {
    threads[Int(id.low % UInt64(threads.count))].run(job)
  }

  // MARK: Uploads

  /// A newer upload of a blob ends the older one: its connection may be half open.
  func begin(_ sink: BlobSink, of id: BlobID) {
    let older = uploads.withLock { $0.updateValue(sink, forKey: id) }
    count { $0.openUploadCount += 1 }
    older?.supersede()
  }

  func ended(_ sink: BlobSink, of id: BlobID) {
    uploads.withLock { if $0[id] === sink { $0[id] = nil } }
    count { $0.openUploadCount -= 1 }
  }

  /// What is there of a blob of so many bytes, told on another thread.
  ///
  /// What has all its bytes and not its name yet gets it now: the process had ended between the two, and nobody sends the last
  /// bytes again. What has the name and other bytes is nothing: it is uploaded anew.
  package func state(
    of id: BlobID, byteCount: Int64,
    _ answer: @escaping @Sendable (Result<BlobFiles.State, BlobFault>) -> Void
  ) {
    run(for: id) { [self] in
      do throws(BlobFault) {
        switch try files.state(of: id) {
        case .partial(byteCount) where uploads.withLock({ $0[id] == nil }):
          try name(id, byteCount)
          answer(.success(.whole(byteCount)))
        case .whole(let count) where count != byteCount:
          note(.damaged)
          answer(.success(.none))
        case let state: answer(.success(state))
        }
      } catch {
        note(error)
        answer(.failure(error))
      }
    }
  }

  private func name(_ id: BlobID, _ byteCount: Int64) throws(BlobFault) {
    let (descriptor, _) = try files.openPart(of: id)
    defer { close(descriptor) }
    try finish(id, descriptor, byteCount)
  }

  /// All bytes of a blob are written.
  func finish(_ id: BlobID, _ descriptor: Int32, _ byteCount: Int64) throws(BlobFault) {
    try files.finish(id, descriptor)
    count {
      $0.completedCount += 1
      $0.storedCount += 1
      $0.storedByteCount += byteCount
    }
  }

  /// Removes what has a blob's name and not its bytes; on the blob's thread.
  func dropDamaged(_ id: BlobID, _ byteCount: Int64) throws(BlobFault) {
    note(.damaged)
    try files.remove(id)
    count {
      $0.storedCount -= 1
      $0.storedByteCount -= byteCount
    }
  }

  // MARK: What is kept

  /// Removes what the backend has let go, and ends uploads of it.
  package func delete(_ ids: [BlobID]) {
    released.withLock { released in
      for id in ids where released.ids.insert(id).inserted { released.order.append(id) }
      guard released.order.count > Self.releasedLimit else { return }
      let dropped = released.order.prefix(released.order.count - Self.releasedLimit / 2)
      released.ids.subtract(dropped)
      released.order.removeFirst(dropped.count)
    }
    let isHeld = held.withLock { held in
      guard held.count > 0 else { return false }
      held.ids += ids
      return true
    }
    guard !isHeld else { return }
    for id in ids {
      uploads.withLock { $0[id] }?.supersede()
      run(for: id) { [self] in remove(id) }
    }
  }

  /// What is to be deleted from now on goes when `releaseDeletions` is called: while a backup looks at the bytes.
  func holdDeletions() { held.withLock { $0.count += 1 } }

  func releaseDeletions() {
    let ids: [BlobID] = held.withLock { held in
      held.count -= 1
      guard held.count == 0 else { return [] }
      defer { held.ids = [] }
      return held.ids
    }
    delete(ids)
  }

  private func remove(_ id: BlobID) {
    do throws(BlobFault) {
      let state = try files.state(of: id)
      try files.remove(id)
      count {
        $0.deletedCount += 1
        if case .whole(let bytes) = state {
          $0.storedCount -= 1
          $0.storedByteCount -= bytes
        }
      }
    } catch { note(error) }
  }
}
