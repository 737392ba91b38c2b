import Foundation
import Palbase
import PalbeChatCore
import PalbeUnits
import PalbeWire
import Synchronization

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Reads and writes files of chats on a thread of its own, a segment at a time. What lies in the spool is sealed: a file
/// that waits to be sent under a key that stands in its row's stand-in descriptor, which is in the sealed storage; what is
/// sent and what was fetched under the key of its message.
actor SpoolWorker {
  private nonisolated let thread = ShellThread(name: "palbe-files")
  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  nonisolated let folder: String
  private var random: RandomSource
  /// The most that is read at once.
  private static let pieceByteCount = 256 << 10

  init(folder: String, random: RandomSource) { (self.folder, self.random) = (folder, random) }

  deinit { thread.end() }

  nonisolated func path(_ name: String) -> String { "\(folder)/\(name)" }

  /// Makes the folder, and removes what nobody waits for.
  func prepare(keeping names: Set<String>) throws {
    do throws(StoreFault) { try AtomicFile.makeFolder(folder) } catch {
      throw BackendError.storeUnavailable(error)
    }
    for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    where !names.contains(name) {
      unlink(path(name))
    }
  }

  nonisolated func remove(_ name: String) { unlink(path(name)) }

  /// A name that no other file has.
  func makeName() -> String { Hex.encode(random.bytes(16)) }

  /// Seals a file of the app's into the spool, under a name of its own and for a blob that stands in for the real one.
  func take(_ source: OutgoingFile.Source, as name: String, at time: WallTime) throws -> SealedAttachment {
    let input: SpoolInput
    switch source {
    case .bytes(let bytes): input = .bytes(bytes)
    case .file(let path): input = .file(try SpoolFile(reading: path))
    }
    return try seal(input, blob: BlobID(at: time, using: &random), to: name)
  }

  /// Seals what waits under `name` for its blob; what comes of it is what is sent.
  func seal(_ name: String, _ descriptor: AttachmentDescriptor, for blob: BlobID, to target: String) throws
    -> SealedAttachment
  {
    let reader = try SpoolReader(SpoolFile(reading: path(name)), descriptor)
    try reader.check()
    return try seal(.sealed(reader), blob: blob, to: target)
  }

  private func seal(_ input: SpoolInput, blob: BlobID, to name: String) throws -> SealedAttachment {
    let output = try SpoolFile(making: path(name))
    do {
      let byteCount = try input.byteCount()
      var sealer: AttachmentSealer
      do throws(AttachmentError) {
        sealer = try AttachmentSealer(plainByteCount: byteCount, blob: blob, using: &random)
      } catch { throw BackendError.client(.attachmentTooLarge) }
      var offset: Int64 = 0
      while let piece = try input.read(from: offset, atMost: Self.pieceByteCount) {
        offset += Int64(piece.count)
        var fed = 0
        while fed < piece.count {
          fed += try sealer.feed(piece.span.extracting(fed...))
          while let sealed = try sealer.take() { try output.append(sealed) }
        }
      }
      while let sealed = try sealer.take() { try output.append(sealed) }
      let result = try sealer.finish()
      try output.sync()
      return result
    } catch {
      remove(name)
      if let fault = error as? AttachmentError {
        // The file changed while it was read.
        throw fault == .moreBytes ? BackendError.integrity : BackendError(fault)
      }
      throw error
    }
  }

  // MARK: Opening

  /// A file of the spool, once its hash is found right. Throws `integrity_failed`.
  func open(_ name: String, _ descriptor: AttachmentDescriptor, removing: Bool) throws -> SpoolReader {
    let reader = try SpoolReader(SpoolFile(reading: path(name), removing: removing), descriptor)
    try reader.check()
    return reader
  }

  /// The next bytes of the file; nil at its end.
  func next(_ reader: SpoolReader) throws -> [UInt8]? { try reader.next() }
}

/// What is sealed.
private enum SpoolInput {
  case bytes([UInt8])
  case file(SpoolFile)
  case sealed(SpoolReader)

  func byteCount() throws -> Int64 {
    switch self {
    case .bytes(let bytes): Int64(bytes.count)
    case .file(let file): try file.byteCount()
    case .sealed(let reader): reader.plainByteCount
    }
  }

  func read(from offset: Int64, atMost count: Int) throws -> [UInt8]? {
    switch self {
    case .bytes(let bytes):
      guard offset < bytes.count else { return nil }
      return Array(bytes[Int(offset)..<min(bytes.count, Int(offset) + count)])
    case .file(let file):
      let piece = try file.read(from: offset, atMost: count)
      return piece.isEmpty ? nil : piece
    case .sealed(let reader): return try reader.next()
    }
  }
}

/// An open file, closed with its last user.
final class SpoolFile: Sendable {
  private let descriptor: Int32
  private let path: String
  private let isRemoved: Bool

  /// - Parameter removing: it goes when nobody reads it any more.
  init(reading path: String, removing: Bool = false) throws {
    descriptor = Self.open(path, O_RDONLY)
    (self.path, isRemoved) = (path, removing)
    guard descriptor >= 0 else { throw BackendError.storeUnavailable(StoreFault(errno: errno)) }
  }

  /// A new file, readable by its owner only; one of that name goes.
  init(making path: String) throws {
    unlink(path)
    descriptor = Self.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)
    (self.path, isRemoved) = (path, false)
    guard descriptor >= 0 else { throw BackendError.storeUnavailable(StoreFault(errno: errno)) }
  }

  private static func open(_ path: String, _ flags: Int32) -> Int32 {
    #if canImport(Darwin)
      Darwin.open(path, flags | O_CLOEXEC, 0o600)
    #else
      Glibc.open(path, flags | O_CLOEXEC, 0o600)
    #endif
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
    if isRemoved { unlink(path) }
  }

  func byteCount() throws -> Int64 {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      throw BackendError.storeUnavailable(StoreFault(errno: errno))
    }
    guard status.st_mode & S_IFMT == S_IFREG else { throw BackendError.storeUnavailable(.system(EINVAL)) }
    return Int64(status.st_size)
  }

  /// Empty at the end.
  func read(from offset: Int64, atMost count: Int) throws -> [UInt8] {
    var fault: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      let got = pread(descriptor, buffer.baseAddress, count, off_t(offset))
      if got < 0 { fault = errno }
      filled = max(0, got)
    }
    guard fault == 0 else { throw BackendError.storeUnavailable(StoreFault(errno: fault)) }
    return bytes
  }

  func append(_ bytes: [UInt8]) throws {
    var done = 0
    while done < bytes.count {
      let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress! + done, $0.count - done) }
      guard count > 0 else { throw BackendError.storeUnavailable(StoreFault(errno: errno)) }
      done += count
    }
  }

  func sync() throws {
    guard fsync(descriptor) == 0 else { throw BackendError.storeUnavailable(StoreFault(errno: errno)) }
    do throws(StoreFault) { try AtomicFile.syncFolder(of: path) } catch {
      throw BackendError.storeUnavailable(error)
    }
  }
}

/// Opens one ciphertext of the spool. Used by one task at a time.
final class SpoolReader: @unchecked Sendable {
  private let file: SpoolFile
  private var opener: AttachmentOpener
  private var offset: Int64 = 0
  private var piece: [UInt8] = []
  private var fed = 0
  let plainByteCount: Int64

  init(_ file: SpoolFile, _ descriptor: AttachmentDescriptor) throws {
    self.file = file
    plainByteCount = descriptor.plainByteCount
    do throws(AttachmentError) { opener = try AttachmentOpener(descriptor) } catch {
      throw BackendError(error)
    }
  }

  /// The first pass: nothing is decrypted before all of it is what the message names.
  func check() throws {
    do {
      while true {
        let piece = try file.read(from: offset, atMost: 256 << 10)
        if piece.isEmpty { break }
        offset += Int64(piece.count)
        try opener.check(piece.span)
      }
      try opener.finishCheck()
    } catch let error as AttachmentError { throw BackendError(error) }
    offset = 0
  }

  func next() throws -> [UInt8]? {
    do {
      while true {
        if let plain = try opener.take() { return plain }
        if fed == piece.count {
          piece = try file.read(from: offset, atMost: 256 << 10)
          fed = 0
          offset += Int64(piece.count)
          if piece.isEmpty { return nil }
        }
        let rest = piece
        fed += try opener.feed(rest.span.extracting(fed...))
      }
    } catch let error as AttachmentError { throw BackendError(error) }
  }
}

extension BackendError {
  init(_ error: AttachmentError) {
    switch error {
    case .size: self = .client(.attachmentTooLarge)
    case .moreBytes, .bytesMissing, .hash, .notChecked, .segment: self = .integrity
    case .crypto: self = .storeUnavailable(.system(-1))
    }
  }
}
