import Glibc

/// Reads another process's memory, as someone who seized the server would.
enum ProcessMemory {
  /// Why a process's memory could not be read.
  enum ReadError: Error, CustomStringConvertible {
    case cannotOpen(path: String, errno: Int32)
    var description: String {
      switch self {
      case .cannotOpen(let path, let code):
        "cannot read \(path) (\(String(cString: strerror(code)))); run as the same user as the server, or as root"
      }
    }
  }

  /// Calls `body` with each readable, writable stretch, in pieces of at most 4 MiB that overlap by `overlap` bytes.
  /// Returns the bytes read. Stretches that vanish meanwhile are passed over.
  @discardableResult
  static func scan(
    processID: pid_t, overlap: Int, _ body: (UnsafeRawBufferPointer) -> Void
  ) throws(ReadError) -> Int {
    let path = "/proc/\(processID)/mem"
    let memory = open(path, O_RDONLY | O_CLOEXEC)
    guard memory >= 0 else { throw .cannotOpen(path: path, errno: errno) }
    defer { close(memory) }
    let maps = try readText("/proc/\(processID)/maps")
    let pieceByteCount = 4 << 20
    let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: pieceByteCount, alignment: 16)
    defer { piece.deallocate() }
    var total = 0
    for line in maps.split(separator: "\n") {
      let fields = line.split(separator: " ", maxSplits: 2)
      guard fields.count >= 2, fields[1].hasPrefix("rw"), !line.hasSuffix("[vvar]") else { continue }
      let bounds = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
      guard bounds.count == 2 else { continue }
      var start = bounds[0]
      while start < bounds[1] {
        let wanted = min(pieceByteCount, Int(bounds[1] - start))
        let count = pread(memory, piece.baseAddress, wanted, off_t(Int64(bitPattern: start)))
        guard count > 0 else { break }
        body(UnsafeRawBufferPointer(rebasing: piece[..<count]))
        total += count
        guard start + UInt64(count) < bounds[1], count > overlap else { break }
        start += UInt64(count - overlap)
      }
    }
    return total
  }

  private static func readText(_ path: String) throws(ReadError) -> String {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw .cannotOpen(path: path, errno: errno) }
    defer { close(file) }
    var bytes = [UInt8]()
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = read(file, &buffer, buffer.count)
      guard count > 0 else { break }
      bytes += buffer[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
