import Glibc
import PalbeBackendCore
import PalbeUnits
import PalbeWebServer
import Synchronization

/// One upload on its way to the disk: pieces go to the blob's thread, and the client waits while too many are on their way.
final class BlobSink: HTTPBodySink, @unchecked Sendable {
  /// How an upload ended for now.
  enum Outcome: Sendable {
    /// All bytes are there and durable.
    case whole
    /// So many are there; the rest may come later.
    case partial(Int64)
    case failed(BlobFault)
    /// A newer upload of the blob goes on, or the blob is gone.
    case superseded
  }

  /// Pieces on their way to the disk, 16 KiB each.
  private static let pieceLimit = 16
  private static let resumeCount = 4
  /// So often what is written is also synced, that the end does not wait for all of it; and the room is looked at.
  private static let syncInterval: Int64 = 32 << 20

  private let id: BlobID
  private let byteCount: Int64
  /// Where the body begins; nil begins anew.
  private let offset: Int64?
  private let store: BlobStore
  private let resume: @Sendable () -> Void
  private let answer: @Sendable (Outcome) -> Void

  private struct Shared {
    var waiting = 0
    var isPaused = false
    /// Answered, or nobody is there to be answered.
    var isOver = false
  }
  private let shared = Mutex(Shared())

  // Of the blob's thread alone.
  private var descriptor: Int32 = -1
  private var length: Int64 = 0
  private var synced: Int64 = 0
  private var hasFailed = false

  /// - Parameter byteCount: of the whole blob.
  init(
    _ id: BlobID, byteCount: Int64, from offset: Int64?, store: BlobStore,
    resume: @escaping @Sendable () -> Void, answer: @escaping @Sendable (Outcome) -> Void
  ) {
    self.id = id
    self.byteCount = byteCount
    self.offset = offset
    self.store = store
    self.resume = resume
    self.answer = answer
    store.begin(self, of: id)
    store.run(for: id) { self.open() }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  // MARK: The web server's thread

  func received(_ piece: [UInt8]) -> Bool {
    let mayGoOn = shared.withLock { shared in
      guard !shared.isOver else { return true }
      shared.waiting += 1
      shared.isPaused = shared.waiting >= Self.pieceLimit
      return !shared.isPaused
    }
    store.run(for: id) { self.write(piece) }
    return mayGoOn
  }

  func completed() { store.run(for: id) { self.finish() } }

  func aborted() {
    shared.withLock { $0.isOver = true }
    store.run(for: id) { self.end() }
  }

  /// Another upload or the blob's deletion ends this one.
  func supersede() {
    tell(.superseded)
    store.run(for: id) { self.end() }
  }

  // MARK: The blob's thread

  private func open() {
    guard !isOver else { return }
    do throws(BlobFault) {
      var state = try store.files.state(of: id)
      if case .whole(let count) = state, count != byteCount {
        try store.dropDamaged(id, count)
        state = .none
      }
      guard case .whole = state else {
        (descriptor, length) = try store.files.openPart(of: id)
        if offset == nil, length > 0 {
          try store.files.truncate(descriptor, to: 0)
          length = 0
        }
        guard length == offset ?? 0 else { throw .offset(length) }
        synced = length
        return try checkRoom()
      }
      // The answer to the last piece was lost: it is given again.
      end()
      tell(.whole)
    } catch { fail(error) }
  }

  private func checkRoom() throws(BlobFault) {
    guard store.files.freeByteCount(keeping: store.reservedByteCount) >= byteCount - length else {
      throw .full
    }
  }

  private func write(_ piece: [UInt8]) {
    if descriptor >= 0, !hasFailed {
      do throws(BlobFault) {
        guard Int64(piece.count) <= byteCount - length else { throw .tooLong }
        try store.files.write(piece, at: length, to: descriptor)
        length += Int64(piece.count)
        store.count { $0.receivedByteCount += UInt64(piece.count) }
        if length - synced >= Self.syncInterval, length < byteCount {
          try store.files.sync(descriptor)
          synced = length
          try checkRoom()
        }
      } catch { fail(error) }
    }
    let mustResume = shared.withLock { shared in
      shared.waiting -= 1
      guard shared.isPaused, shared.waiting <= Self.resumeCount else { return false }
      shared.isPaused = false
      return true
    }
    if mustResume { resume() }
  }

  private func finish() {
    if descriptor >= 0, !hasFailed, !isOver {
      do throws(BlobFault) {
        guard length == byteCount else {
          end()
          return tell(.partial(length))
        }
        try store.finish(id, descriptor, byteCount)
        end()
        tell(.whole)
      } catch { fail(error) }
    }
    end()
  }

  private var isOver: Bool { shared.withLock { $0.isOver } }

  private func fail(_ fault: BlobFault) {
    hasFailed = true
    store.note(fault)
    end()
    tell(.failed(fault))
  }

  private func tell(_ outcome: Outcome) {
    let isFirst = shared.withLock { shared in
      defer { shared.isOver = true }
      return !shared.isOver
    }
    if isFirst { answer(outcome) }
  }

  private var hasEnded = false

  private func end() {
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
    guard !hasEnded else { return }
    hasEnded = true
    store.ended(self, of: id)
  }
}
