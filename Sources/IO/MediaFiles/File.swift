import Glibc

/// An open file, or bytes that behave like one; errors name the path.
struct File: ~Copyable, @unchecked Sendable {
  // Sendable because the stream has one owner, and moves with it.
  private let stream: UnsafeMutablePointer<FILE>
  // What an in-memory stream reads from; it must outlive the stream.
  private let memory: UnsafeMutableRawBufferPointer?
  let path: String
  /// Bytes in the file when it was opened.
  let byteCount: Int

  init(reading path: String) throws(MediaFileError) {
    // Looked at before it is opened: opening a named pipe waits for its writer, who may never come.
    var status = stat()
    guard stat(path, &status) == 0 else {
      throw MediaFileError(path, .system(operation: "open it", reason: Self.reason))
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      let isFolder = status.st_mode & S_IFMT == S_IFDIR
      throw MediaFileError(
        path, .system(operation: "read it", reason: isFolder ? "it is a folder" : "it is not a regular file"))
    }
    guard let stream = fopen(path, "rbe") else {
      throw MediaFileError(path, .system(operation: "open it", reason: Self.reason))
    }
    self.stream = stream
    self.memory = nil
    self.path = path
    byteCount = Int(status.st_size)
  }

  /// Reads from bytes, called `name` in errors.
  init(bytes: [UInt8], name: String) throws(MediaFileError) {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bytes.count), alignment: 16)
    memory.copyBytes(from: bytes)
    guard let stream = fmemopen(memory.baseAddress, bytes.count, "rb") else {
      memory.deallocate()
      throw MediaFileError(name, .system(operation: "open it", reason: Self.reason))
    }
    self.stream = stream
    self.memory = memory
    path = name
    byteCount = bytes.count
  }

  /// Makes the file or empties it.
  init(writing path: String) throws(MediaFileError) {
    guard let stream = fopen(path, "wbe") else {
      throw MediaFileError(path, .system(operation: "write it", reason: Self.reason))
    }
    self.stream = stream
    self.memory = nil
    self.path = path
    byteCount = 0
  }

  deinit {
    fclose(stream)
    memory?.deallocate()
  }

  private static var reason: String { String(cString: strerror(errno)) }

  private func failure(_ operation: String) -> MediaFileError {
    MediaFileError(path, .system(operation: operation, reason: Self.reason))
  }

  /// Fills `buffer` as far as the file goes and returns how many bytes that was.
  mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(MediaFileError) -> Int {
    guard let base = buffer.baseAddress else { return 0 }
    let count = fread(base, 1, buffer.count, stream)
    if count < buffer.count, ferror(stream) != 0 { throw failure("read it") }
    return count
  }

  /// Up to `limit` bytes; fewer at the end of the file.
  mutating func read(upTo limit: Int) throws(MediaFileError) -> [UInt8] {
    let count = max(0, min(limit, byteCount - position))
    var bytes = [UInt8](repeating: 0, count: count)
    let stream = stream
    let got = bytes.withUnsafeMutableBytes { fread($0.baseAddress, 1, count, stream) }
    if got < count, ferror(stream) != 0 { throw failure("read it") }
    bytes.removeLast(count - got)
    return bytes
  }

  /// The next byte, nil at the end.
  mutating func readByte() -> UInt8? { UInt8(exactly: getc(stream)) }

  /// Bytes from the start of the file.
  var position: Int { max(0, ftell(stream)) }

  mutating func seek(to offset: Int) throws(MediaFileError) {
    guard fseek(stream, offset, SEEK_SET) == 0 else { throw failure("seek in it") }
  }

  mutating func write(_ bytes: UnsafeRawBufferPointer) throws(MediaFileError) {
    guard let base = bytes.baseAddress, bytes.count > 0 else { return }
    guard fwrite(base, 1, bytes.count, stream) == bytes.count else { throw failure("write it") }
  }

  mutating func write(_ bytes: [UInt8]) throws(MediaFileError) {
    let stream = stream
    let written = bytes.withUnsafeBytes { $0.isEmpty ? 0 : fwrite($0.baseAddress, 1, $0.count, stream) }
    guard written == bytes.count else { throw failure("write it") }
  }

  mutating func flush() throws(MediaFileError) {
    guard fflush(stream) == 0 else { throw failure("write it") }
  }
}
