/// Plays a WAV file in a loop as a call wants it: one channel at 48 kHz. Two channels are mixed; other rates
/// resampled.
public struct MonoWAVReader: ~Copyable, Sendable {
  private var reader: WAVReader
  private var resampler: Resampler
  private var block: [Int16]
  private var ready: [Int16] = []
  private var taken = 0

  /// The file's own rate and channels.
  public var header: WAVHeader { reader.header }

  /// Throws when the file is missing, malformed, empty or of a rate that is not in
  /// `Resampler.supportedRates`.
  public init(path: String) throws(MediaFileError) {
    try self.init(reader: WAVReader(path: path), path: path)
  }

  /// Plays a file that is in memory; `name` stands for the path in errors.
  public init(bytes: [UInt8], name: String) throws(MediaFileError) {
    try self.init(reader: WAVReader(bytes: bytes, name: name), path: name)
  }

  private init(reader: consuming WAVReader, path: String) throws(MediaFileError) {
    let rate = reader.header.sampleRate
    guard let resampler = Resampler(from: rate) else {
      let rates = Resampler.supportedRates.map(String.init).joined(separator: ", ")
      throw MediaFileError(
        path, .unsupported(what: "the sample rate", found: "\(rate) Hz", expected: "\(rates) Hz"))
    }
    self.resampler = resampler
    self.reader = reader
    block = []
    block.reserveCapacity(1_024)
  }

  /// Fills `frame` with the next samples; after the last one comes the first again.
  public mutating func read(into frame: inout [Int16]) throws(MediaFileError) {
    for index in frame.indices {
      while taken == ready.count { try refill() }
      frame[index] = ready[taken]
      taken += 1
    }
  }

  private mutating func refill() throws(MediaFileError) {
    ready.removeAll(keepingCapacity: true)
    taken = 0
    if reader.remaining == 0 { try reader.rewind() }
    let channels = reader.header.channels
    block.removeAll(keepingCapacity: true)
    try block.append(addingCapacity: 512 * channels) { output throws(MediaFileError) in
      try reader.read(into: &output)
    }
    if channels == 2 {
      for frame in 0..<block.count / 2 {
        block[frame] = Int16((Int(block[2 * frame]) + Int(block[2 * frame + 1])) / 2)
      }
      block.removeLast(block.count / 2)
    }
    resampler.resample(block, into: &ready)
  }
}
