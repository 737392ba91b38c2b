import PalbeUnits

/// Reads a Y4M file's pictures in order.
public struct Y4MReader: ~Copyable, Sendable {
  private var file: File
  private let firstFrame: Int
  /// What the file said about itself.
  public let header: Y4MHeader
  /// Pictures in the file, at least 1.
  public let pictureCount: Int
  /// Pictures read so far.
  public private(set) var index = 0

  /// Opens the file and checks that every picture is whole, so that later reads fail only when the disk does.
  ///
  /// Throws when the file is missing, not Y4M 4:2:0, cut off or empty; the error's description names the
  /// path.
  public init(path: String) throws(MediaFileError) { try self.init(file: File(reading: path)) }

  /// Reads a Y4M file that is in memory; `name` stands for the path in errors.
  public init(bytes: [UInt8], name: String) throws(MediaFileError) {
    try self.init(file: File(bytes: bytes, name: name))
  }

  private init(file: consuming File) throws(MediaFileError) {
    let line = try Self.readLine(&file, limit: Y4MHeader.maximumByteCount)
    let header: Y4MHeader
    do throws(MediaFileError.Problem) {
      guard let line else { throw .notRecognised(expected: "a Y4M file (YUV4MPEG2)") }
      header = try Y4MHeader.parse(line)
    } catch {
      throw MediaFileError(file.path, error)
    }
    let firstFrame = file.position
    let pictureCount = try Self.countPictures(&file, header)
    try file.seek(to: firstFrame)
    self.file = file
    self.header = header
    self.firstFrame = firstFrame
    self.pictureCount = pictureCount
  }

  private static func countPictures(
    _ file: inout File, _ header: Y4MHeader
  ) throws(MediaFileError) -> Int {
    var count = 0
    while file.position < file.byteCount {
      try readFrameLine(&file)
      let end = file.position + header.pictureByteCount
      guard end <= file.byteCount else {
        throw MediaFileError(
          file.path,
          .truncated(
            what: "picture \(count + 1)", expected: header.pictureByteCount,
            found: file.byteCount - file.position))
      }
      try file.seek(to: end)
      count += 1
    }
    guard count > 0 else { throw MediaFileError(file.path, .empty(what: "pictures")) }
    return count
  }

  /// Reads the next picture into `picture`, whose memory is used again when the size is the same; false at
  /// the end.
  public mutating func read(into picture: inout I420Image) throws(MediaFileError) -> Bool {
    guard index < pictureCount else { return false }
    try Self.readFrameLine(&file)
    picture.setSize(width: header.width, height: header.height)
    var plane = picture.mutableLuma
    try Self.fill(&plane, from: &file)
    plane = picture.mutableU
    try Self.fill(&plane, from: &file)
    plane = picture.mutableV
    try Self.fill(&plane, from: &file)
    index += 1
    return true
  }

  /// Passes over the next picture; false at the end.
  public mutating func skip() throws(MediaFileError) -> Bool {
    guard index < pictureCount else { return false }
    try Self.readFrameLine(&file)
    try file.seek(to: file.position + header.pictureByteCount)
    index += 1
    return true
  }

  /// Goes back to the first picture.
  public mutating func rewind() throws(MediaFileError) {
    try file.seek(to: firstFrame)
    index = 0
  }

  private static func fill(_ plane: inout MutableSpan<UInt8>, from file: inout File) throws(MediaFileError) {
    let (wanted, path) = (plane.count, file.path)
    let got = try plane.withUnsafeMutableBytes { bytes throws(MediaFileError) in try file.read(into: bytes) }
    guard got == wanted else {
      throw MediaFileError(path, .truncated(what: "a picture", expected: wanted, found: got))
    }
  }

  /// "FRAME", and parameters that are ignored.
  private static func readFrameLine(_ file: inout File) throws(MediaFileError) {
    let start = file.position
    let line = try readLine(&file, limit: 128)
    guard let line, line == "FRAME" || line.hasPrefix("FRAME ") else {
      throw MediaFileError(
        file.path, .malformed(what: "the line at byte \(start)", found: "another", expected: "\"FRAME\""))
    }
  }

  /// A line without its newline; nil when there is none within `limit` bytes or the file ends first.
  private static func readLine(_ file: inout File, limit: Int) throws(MediaFileError) -> String? {
    var bytes = [UInt8]()
    while bytes.count <= limit, let byte = file.readByte() {
      if byte == UInt8(ascii: "\n") { return String(decoding: bytes, as: UTF8.self) }
      bytes.append(byte)
    }
    return nil
  }
}

/// Writes pictures of one size into a Y4M file.
public struct Y4MWriter: ~Copyable, Sendable {
  private var file: File
  /// The size and rate of every picture.
  public let header: Y4MHeader

  /// Makes the file or empties it.
  public init(path: String, header: Y4MHeader) throws(MediaFileError) {
    var file = try File(writing: path)
    try file.write(Array(header.line.utf8))
    self.file = file
    self.header = header
  }

  /// Appends a picture; throws when it has another size than the file.
  public mutating func write(_ picture: borrowing I420Image) throws(MediaFileError) {
    guard picture.width == header.width, picture.height == header.height else {
      throw MediaFileError(
        file.path,
        .malformed(
          what: "the picture", found: "\(picture.width)x\(picture.height)",
          expected: "\(header.width)x\(header.height)"))
    }
    try file.write(Array("FRAME\n".utf8))
    try file.write(picture.y)
    try file.write(picture.u)
    try file.write(picture.v)
  }

  /// Writes out what is still in memory.
  public consuming func finish() throws(MediaFileError) { try file.flush() }
}
