/// Reads a WAV file's samples from the start to the end, as they are in the file.
///
/// `MonoWAVReader` mixes and resamples to what a call needs.
public struct WAVReader: ~Copyable, Sendable {
  private var file: File
  /// What the file said about itself.
  public let header: WAVHeader
  /// Sample frames not read yet.
  public private(set) var remaining: Int

  /// Throws when the file is missing or not a WAV file that we read; the error's description names the path.
  public init(path: String) throws(MediaFileError) { try self.init(file: File(reading: path)) }

  /// Reads a WAV file that is in memory; `name` stands for the path in errors.
  public init(bytes: [UInt8], name: String) throws(MediaFileError) {
    try self.init(file: File(bytes: bytes, name: name))
  }

  private init(file: consuming File) throws(MediaFileError) {
    let start = try file.read(upTo: WAVHeader.maximumByteCount)
    let header: WAVHeader
    do throws(MediaFileError.Problem) {
      header = try WAVHeader.parse(start.span, fileByteCount: file.byteCount)
    } catch {
      throw MediaFileError(file.path, error)
    }
    try file.seek(to: header.data.lowerBound)
    self.file = file
    self.header = header
    remaining = header.frameCount
  }

  /// Appends samples, interleaved when there are two channels, until `output` is full or the file ends.
  ///
  /// - Returns: sample frames appended, 0 at the end.
  @discardableResult @_lifetime(output: copy output)
  public mutating func read(into output: inout OutputSpan<Int16>) throws(MediaFileError) -> Int {
    let frames = min(remaining, output.freeCapacity / header.channels)
    guard frames > 0 else { return 0 }
    let wanted = frames * header.channels * 2
    let got = try output.withUnsafeMutableBufferPointer { buffer, count throws(MediaFileError) -> Int in
      let free = UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: buffer[count...]))
      let got = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: free[..<wanted]))
      count += got / 2
      return got
    }
    // The length was checked when the file was opened: it has shrunk since.
    guard got == wanted else {
      throw MediaFileError(file.path, .truncated(what: "the sample data", expected: wanted, found: got))
    }
    remaining -= frames
    return frames
  }

  /// Goes back to the first sample.
  public mutating func rewind() throws(MediaFileError) {
    try file.seek(to: header.data.lowerBound)
    remaining = header.frameCount
  }
}

/// Writes 16-bit PCM samples into a WAV file.
public struct WAVWriter: ~Copyable, Sendable {
  private var file: File
  private let channels: Int
  private let sampleRate: Int
  private var dataByteCount = 0

  /// Makes the file or empties it. `channels` is 1 or 2.
  public init(path: String, channels: Int = 1, sampleRate: Int = 48_000) throws(MediaFileError) {
    precondition(channels == 1 || channels == 2)
    var file = try File(writing: path)
    try file.write(WAVHeader.encode(channels: channels, sampleRate: sampleRate, dataByteCount: 0))
    self.file = file
    self.channels = channels
    self.sampleRate = sampleRate
  }

  /// Appends samples, interleaved when there are two channels.
  public mutating func write(_ samples: Span<Int16>) throws(MediaFileError) {
    guard dataByteCount + samples.count * 2 <= 0xffff_ff00 else { throw MediaFileError(file.path, .tooLong) }
    try samples.withUnsafeBytes { bytes throws(MediaFileError) in try file.write(bytes) }
    dataByteCount += samples.count * 2
  }

  /// Completes the header. A file without this reads up to its end all the same.
  public consuming func finish() throws(MediaFileError) {
    try file.seek(to: 0)
    try file.write(WAVHeader.encode(channels: channels, sampleRate: sampleRate, dataByteCount: dataByteCount))
    try file.flush()
  }
}
