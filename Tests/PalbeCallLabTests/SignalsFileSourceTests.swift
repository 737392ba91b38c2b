import Foundation
import PalbeCall
import PalbeMediaFiles
import PalbeUnits
import Testing

@Suite struct SignalsFileSourceTests {
  private final class Folder {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("palbe-\(UUID().uuidString)")
    init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }
    deinit { try? FileManager.default.removeItem(at: url) }
    func path(_ name: String) -> String { url.appendingPathComponent(name).path }
  }

  private static func writeVideo(_ path: String, pictures: Int, framesPerSecond: Int) throws {
    let header = Y4MHeader(width: 16, height: 8, framesPerSecond: framesPerSecond)
    var writer = try Y4MWriter(path: path, header: header)
    for index in 0..<pictures { try writer.write(I420Image(width: 16, height: 8, luma: UInt8(index))) }
    try writer.finish()
  }

  @Test("what a sink records a source plays, in a loop") func sound() throws {
    let folder = try Folder()
    let sink = try WAVAudioSink(path: folder.path("a.wav"))
    let samples = (0..<1_500).map { Int16($0) }
    sink.write(samples.span)
    try sink.finish()
    sink.write(samples.span)
    try sink.finish()
    let source = try WAVAudioSource(path: folder.path("a.wav"))
    var frame = [Int16](repeating: 0, count: 960)
    var heard = [Int16]()
    for _ in 0..<5 {
      source.next(into: &frame)
      heard += frame
    }
    #expect(heard == (0..<4_800).map { Int16($0 % 1_500) })
  }

  @Test("pictures are repeated or left out when the call's rate is not the file's; the file loops")
  func pictures() throws {
    let folder = try Folder()
    for (fileRate, callRate, expected) in [
      (30, 30, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0]), (15, 30, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 0]),
      (60, 30, [0, 2, 4, 1, 3, 0, 2, 4, 1, 3, 0]), (25, 30, [0, 0, 1, 2, 3, 4, 0, 0, 1, 2, 3]),
    ] {
      let path = folder.path("\(fileRate).y4m")
      try Self.writeVideo(path, pictures: 5, framesPerSecond: fileRate)
      var source: any VideoSource = try Y4MVideoSource(path: path, framesPerSecond: callRate)
      #expect(source.width == 16 && source.height == 8)
      var seen = [Int]()
      for index in expected.indices {
        let picture = source.next(frameIndex: index)
        seen.append(Int(try #require(picture).y[0]))
      }
      #expect(seen == expected)
    }
  }

  @Test("frames that were dropped are passed over, also whole loops of them") func dropped() throws {
    let folder = try Folder()
    try Self.writeVideo(folder.path("a.y4m"), pictures: 5, framesPerSecond: 30)
    let source = try Y4MVideoSource(path: folder.path("a.y4m"), framesPerSecond: 30)
    var picture = I420Image(width: 1, height: 1)
    for index in [0, 3, 4, 11, 11, 12, 1_003, 1_000_004, 1_000_005] {
      #expect(source.next(frameIndex: index, into: &picture))
      #expect(picture.y[0] == UInt8(index % 5), "\(index)")
    }
  }

  @Test("a video sink takes its size from the first picture and leaves others out") func videoSink() throws {
    let folder = try Folder()
    let sink = Y4MVideoSink(path: folder.path("a.y4m"), framesPerSecond: 30)
    sink.write(I420Image(width: 16, height: 8, luma: 7))
    sink.write(I420Image(width: 18, height: 8))
    sink.write(I420Image(width: 16, height: 8, luma: 9))
    try sink.finish()
    sink.write(I420Image(width: 16, height: 8))
    #expect(sink.refused == 1)
    #expect(try Y4MReader(path: folder.path("a.y4m")).pictureCount == 2)
  }

  @Test("a full disk: the recording says so at its end, however often it is asked") func fullDisk() throws {
    let sound = try WAVAudioSink(path: "/dev/full")
    let samples = [Int16](repeating: 5, count: 48_000)
    for _ in 0..<2 { sound.write(samples.span) }
    let video = Y4MVideoSink(path: "/dev/full", framesPerSecond: 30)
    for _ in 0..<2 { video.write(I420Image(width: 640, height: 360)) }
    #expect(video.refused == 2)
    // So little that it reaches the disk only at the end.
    let short = Y4MVideoSink(path: "/dev/full", framesPerSecond: 30)
    short.write(I420Image(width: 16, height: 8))
    #expect(short.refused == 0)
    for _ in 0..<2 {
      let errors = [
        #expect(throws: MediaFileError.self) { try sound.finish() },
        #expect(throws: MediaFileError.self) { try video.finish() },
        #expect(throws: MediaFileError.self) { try short.finish() },
      ]
      for error in errors {
        #expect(error?.description == "/dev/full: cannot write it: No space left on device")
      }
    }
    let nowhere = Y4MVideoSink(path: "/dev/full/a.y4m", framesPerSecond: 30)
    nowhere.write(I420Image(width: 16, height: 8))
    #expect(throws: MediaFileError.self) { try nowhere.finish() }
  }

  @Test("a missing or malformed file is one clear line") func refusals() throws {
    let folder = try Folder()
    let path = folder.path("none")
    let sound = #expect(throws: MediaFileError.self) { _ = try WAVAudioSource(path: path) }
    #expect(sound?.description == "\(path): cannot open it: No such file or directory")
    let video = #expect(throws: MediaFileError.self) {
      _ = try Y4MVideoSource(path: path, framesPerSecond: 30)
    }
    #expect(video?.description == "\(path): cannot open it: No such file or directory")
    try Data("RIFF".utf8).write(to: URL(fileURLWithPath: path))
    let malformed = #expect(throws: MediaFileError.self) { _ = try WAVAudioSource(path: path) }
    #expect(malformed?.description == "\(path): not a WAV file (RIFF/WAVE)")
  }
}
