import Glibc
import PalbeBackendCore
import PalbeUnits
import PalbeWebServer
import Synchronization

/// One download: the blob's thread reads a piece when the client has taken the one before.
final class BlobSource: HTTPBodySource {
  private enum State: Sendable {
    case idle
    case reading
    case read([UInt8])
    case failed
    case closed
  }

  private let id: BlobID
  private let store: BlobStore
  private let descriptor: Int32
  private let state = Mutex(State.idle)
  private let offset: Mutex<Int64>

  /// Takes the descriptor over.
  init(_ id: BlobID, _ descriptor: Int32, from offset: Int64, store: BlobStore) {
    self.id = id
    self.descriptor = descriptor
    self.offset = Mutex(offset)
    self.store = store
    store.count { $0.openDownloadCount += 1 }
  }

  deinit {
    close(descriptor)
    store.count { $0.openDownloadCount -= 1 }
  }

  func next(atMost count: Int, ready: @escaping @Sendable () -> Void) -> HTTPBodyPiece {
    let known: HTTPBodyPiece? = state.withLock { state in
      switch state {
      case .idle:
        state = .reading
        return nil
      case .read(let bytes):
        state = .idle
        return .bytes(bytes)
      case .reading: return .later
      case .failed, .closed: return .failed
      }
    }
    if let known { return known }
    store.run(for: id) {
      self.read(count)
      ready()
    }
    return .later
  }

  func closed() { state.withLock { $0 = .closed } }

  private func read(_ count: Int) {
    guard state.withLock({ if case .reading = $0 { true } else { false } }) else { return }
    let start = offset.withLock { $0 }
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      filled = 0
      repeat {
        filled = pread(descriptor, buffer.baseAddress, count, off_t(start))
      } while filled < 0 && errno == EINTR
      filled = max(0, filled)
    }
    offset.withLock { $0 += Int64(bytes.count) }
    store.count { $0.sentByteCount += UInt64(bytes.count) }
    if bytes.isEmpty { store.note(.damaged) }
    state.withLock { state in
      if case .reading = state { state = bytes.isEmpty ? .failed : .read(bytes) }
    }
  }
}
