import Glibc
import PalbeMediaFiles
import Testing

@Suite struct WAVTests {
  private static func samples(_ bytes: [UInt8]) throws -> (WAVHeader, [Int16]) {
    var reader = try WAVReader(bytes: bytes, name: "a.wav")
    var samples = [Int16]()
    // An odd room, so that stereo frames do not fill it.
    while reader.remaining > 0 {
      try samples.append(addingCapacity: 3) { output throws(MediaFileError) in try reader.read(into: &output)
      }
    }
    return (reader.header, samples)
  }

  @Test("what is written reads back", arguments: [(1, 48_000), (2, 44_100)])
  func roundTrip(channels: Int, rate: Int) throws {
    let folder = try Temporary()
    let sent = (0..<1_000).map { Int16(truncatingIfNeeded: $0 * 97) }
    var writer = try WAVWriter(path: folder.path("a.wav"), channels: channels, sampleRate: rate)
    for half in [Array(sent[..<500]), Array(sent[500...])] { try writer.write(half.span) }
    try writer.finish()
    var reader = try WAVReader(path: folder.path("a.wav"))
    #expect(reader.header.channels == channels && reader.header.sampleRate == rate)
    #expect(reader.header.frameCount == 1_000 / channels)
    for _ in 0..<2 {
      let heard = try [Int16](capacity: 2_000) { output throws(MediaFileError) in
        try reader.read(into: &output)
      }
      #expect(heard == sent)
      #expect(reader.remaining == 0)
      try reader.rewind()
    }
  }

  @Test("a recording that was not finished reads up to its end") func unfinished() throws {
    var fixture = WAVFixture()
    fixture.claimed = 0
    #expect(try Self.samples(fixture.bytes).1 == [1, 2, 3, -1])
    fixture.claimed = 0xffff_ffff
    #expect(try Self.samples(fixture.bytes).1 == [1, 2, 3, -1])
  }

  @Test("stereo, extensible headers, other chunks and padding are read") func variants() throws {
    var fixture = WAVFixture()
    fixture.channels = 2
    #expect(try Self.samples(fixture.bytes).1 == [1, 2, 3, -1])
    fixture.isExtensible = true
    // A chunk of three bytes and one of padding.
    fixture.before = Array("LIST".utf8) + [3, 0, 0, 0, 9, 9, 9, 0]
    let (header, samples) = try Self.samples(fixture.bytes)
    #expect(samples == [1, 2, 3, -1])
    #expect(header.channels == 2 && header.sampleRate == 48_000)
    // Half a sample frame at the end is left out.
    fixture.data += [7, 7]
    #expect(try Self.samples(fixture.bytes).1 == [1, 2, 3, -1])
  }

  @Test("every prefix of a file is refused with the file's name") func truncation() throws {
    var fixture = WAVFixture()
    fixture.isExtensible = true
    fixture.before = Array("LIST".utf8) + [2, 0, 0, 0, 9, 9]
    let bytes = fixture.bytes
    for count in 0..<bytes.count {
      let error = #expect(throws: MediaFileError.self) {
        _ = try WAVReader(bytes: Array(bytes[..<count]), name: "a.wav")
      }
      #expect(error?.description.hasPrefix("a.wav: ") == true)
    }
  }

  static let malformed: [(String, @Sendable (inout WAVFixture) -> Void)] = [
    ("not a WAV file (RIFF/WAVE)", { $0.riff = "RIFX" }),
    ("not a WAV file (RIFF/WAVE)", { $0.wave = "AVI " }),
    ("the sample format is floating point: only 16-bit PCM can be read", { ($0.format, $0.bits) = (3, 32) }),
    ("the sample format is 24-bit PCM: only 16-bit PCM can be read", { $0.bits = 24 }),
    ("the sample format is format 85: only 16-bit PCM can be read", { $0.format = 85 }),
    ("the number of channels is 0: only 1 or 2 can be read", { $0.channels = 0 }),
    ("the number of channels is 6: only 1 or 2 can be read", { $0.channels = 6 }),
    ("the sample rate is 999 Hz: expected 1000 to 192000 Hz", { $0.rate = 999 }),
    ("the bytes a sample frame is 4: expected 2", { $0.align = 4 }),
    ("the sample data is cut off: expected 9 bytes, found 8", { $0.claimed = 9 }),
    ("the sample data is cut off: expected 4294967294 bytes, found 8", { $0.claimed = 0xffff_fffe }),
    ("there are no samples in it", { $0.data = [] }),
    ("there are no samples in it", { $0.data = [1] }),
    (
      "the header is without a \"fmt \" chunk: expected one",
      { ($0.formatChunk, $0.dataChunk) = (false, false) }
    ),
    ("the first chunk is \"data\": expected \"fmt \" before it", { $0.formatChunk = false }),
    ("the header is without a \"data\" chunk: expected one in its first 64 KiB", { $0.dataChunk = false }),
    (
      "the header is without a \"fmt \" chunk: expected one",
      { $0.before = Array("LIST".utf8) + [0xff, 0xff, 0xff, 0xff] }
    ),
  ]

  @Test("a malformed file is refused in one line that names what was wrong", arguments: malformed.indices)
  func refusals(index: Int) throws {
    let (text, change) = Self.malformed[index]
    var fixture = WAVFixture()
    change(&fixture)
    let bytes = fixture.bytes
    let error = #expect(throws: MediaFileError.self) { _ = try WAVReader(bytes: bytes, name: "a.wav") }
    #expect(error?.description == "a.wav: " + text)
  }

  @Test("files that cannot be opened are refused in one line") func system() throws {
    let folder = try Temporary()
    let missing = folder.path("none.wav")
    let error = #expect(throws: MediaFileError.self) { _ = try WAVReader(path: missing) }
    #expect(error?.description == "\(missing): cannot open it: No such file or directory")
    let isFolder = #expect(throws: MediaFileError.self) { _ = try WAVReader(path: folder.path(".")) }
    #expect(isFolder?.description == "\(folder.path(".")): cannot read it: it is a folder")
    let device = #expect(throws: MediaFileError.self) { _ = try WAVReader(path: "/dev/null") }
    #expect(device?.description == "/dev/null: cannot read it: it is not a regular file")
    // Nobody writes to this pipe: opening it would wait for ever.
    let pipe = folder.path("pipe.wav")
    try #require(mkfifo(pipe, 0o600) == 0)
    let waiting = #expect(throws: MediaFileError.self) { _ = try WAVReader(path: pipe) }
    #expect(waiting?.description == "\(pipe): cannot read it: it is not a regular file")
    let nowhere = folder.path("none/a.wav")
    let unwritable = #expect(throws: MediaFileError.self) { _ = try WAVWriter(path: nowhere) }
    #expect(unwritable?.description == "\(nowhere): cannot write it: No such file or directory")
  }

  @Test("a file that shrinks while it is read is noticed") func shrinking() throws {
    let folder = try Temporary()
    var fixture = WAVFixture()
    fixture.data = [UInt8](repeating: 1, count: 100_000)
    let path = try folder.write(fixture.bytes, to: "a.wav")
    var reader = try WAVReader(path: path)
    _ = try folder.write(Array(fixture.bytes[..<1_000]), to: "a.wav")
    #expect(throws: MediaFileError.self) {
      _ = try [Int16](capacity: 60_000) { output throws(MediaFileError) in try reader.read(into: &output) }
    }
  }
}
