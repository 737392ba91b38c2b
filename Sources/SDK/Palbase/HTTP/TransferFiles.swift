import Foundation

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// A part of a file that is sent.
final class FileSource {
  private let descriptor: Int32
  private let range: Range<Int64>
  private var offset: Int64 = 0
  /// Why reading failed.
  private(set) var fault: NetworkFault?

  init(path: String, range: Range<Int64>) throws(NetworkFault) {
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .file(errno) }
    self.range = range
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Back to `offset` from the part's start.
  func seek(to offset: Int64) -> Bool {
    guard (0...Int64(range.count)).contains(offset) else { return false }
    self.offset = offset
    return true
  }

  /// Bytes read, 0 at the end; nil when the file cannot be read or is shorter than it was.
  func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
    let wanted = min(Int64(buffer.count), Int64(range.count) - offset)
    guard wanted > 0 else { return 0 }
    let count = pread(descriptor, buffer.baseAddress, Int(wanted), off_t(range.lowerBound + offset))
    guard count > 0 else {
      fault = .file(count < 0 ? errno : EIO)
      return nil
    }
    offset += Int64(count)
    return count
  }
}

/// A file that an answer's body goes into.
final class FileSink {
  private let path: String
  private let limit: Int64
  private var descriptor: Int32 = -1
  /// Bytes that were there before, and then that are.
  private var byteCount: Int64 = 0

  init(path: String, limit: Int64, resumes: Bool) {
    self.path = path
    self.limit = limit
    guard resumes else { return }
    var status = stat()
    if stat(path, &status) == 0 { byteCount = Int64(status.st_size) }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// The header that asks for the rest.
  var range: String? { byteCount > 0 ? "bytes=\(byteCount)-" : nil }

  /// Whether the body is the file, not an explanation.
  func takes(_ head: AnswerHead) -> Bool { head.status == 200 || head.status == 206 }

  func write(_ bytes: UnsafeRawBufferPointer, _ head: AnswerHead) throws(NetworkFault) {
    try open(head)
    guard byteCount + Int64(bytes.count) <= limit else { throw .answerTooLarge }
    var done = 0
    while done < bytes.count {
      let count = pwrite(
        descriptor, bytes.baseAddress! + done, bytes.count - done, off_t(byteCount))
      guard count > 0 else { throw .file(errno) }
      done += count
      byteCount += Int64(count)
    }
  }

  /// An answer without a byte makes an empty file.
  func finish(_ head: AnswerHead) throws(NetworkFault) { try open(head) }

  private func open(_ head: AnswerHead) throws(NetworkFault) {
    guard descriptor < 0 else { return }
    if head.status == 200 { byteCount = 0 }
    if head.status == 206 {
      guard head.fields["content-range"]?.hasPrefix("bytes \(byteCount)-") == true else {
        throw .other("the server sent another part than was asked for")
      }
    }
    descriptor = systemOpen(path, O_WRONLY | O_CREAT | O_CLOEXEC | (head.status == 200 ? O_TRUNC : 0))
    guard descriptor >= 0 else { throw .file(errno) }
  }

  private func systemOpen(_ path: String, _ flags: Int32) -> Int32 {
    #if canImport(Darwin)
      Darwin.open(path, flags, 0o600)
    #else
      Glibc.open(path, flags, 0o600)
    #endif
  }
}
