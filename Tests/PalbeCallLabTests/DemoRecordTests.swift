import Glibc
import PalbeCall
import PalbeCallCore
import PalbeUnits
import Testing

@testable import PalbeCallLab

@Suite("What a participant of the demo records")
struct DemoRecordTests {
  @Test("A frame's secret part begins after its clear bytes")
  func secret() {
    func secret(_ track: LocalTrack, _ bytes: [UInt8]) -> [UInt8] {
      Array(SentRecord.EncodedFrame(track: track, bytes: bytes).secret)
    }
    let bytes = Array(UInt8(0)..<20)
    #expect(secret(.camera, bytes) == Array(10..<20))
    #expect(secret(.camera, [1] + bytes) == Array(2..<20))
    #expect(secret(.microphone, bytes) == Array(1..<20))
    #expect(secret(.microphone, []).isEmpty)
    #expect(secret(.camera, [0, 1]).isEmpty)
  }

  @Test("Frames are logged while they reach the server, up to a bound")
  func log() {
    let record = SentRecord(numberBase: 1_000_000)
    record.encoded(.camera, [1])
    record.beginLogging()
    record.encoded(.camera, [2])
    record.encoded(.microphone, [3])
    record.encoded(.camera, [UInt8](repeating: 4, count: SentRecord.byteLimit))
    record.endLogging()
    record.encoded(.camera, [5])
    #expect(record.frames.map(\.bytes) == [[2], [3]])
    record.captured(7, at: .zero)
    #expect(record.captures == [Capture(number: 1_000_007, time: .zero)])
  }

  @Test("Decoded pictures give their numbers, and some are kept and compared with their source")
  func pictures() {
    let record = ReceivedRecord(seconds: 1, sampleLimit: 2)
    var card = NumberedCard(base: 500)
    #expect(record.firstDecode == nil)
    for index in 0..<200 where index % 10 == 0 {
      var picture = I420Image(width: 640, height: 360)
      #expect(card.next(frameIndex: index, into: &picture) == true)
      record.decoded(picture, at: .zero + .milliseconds(index))
    }
    record.decoded(I420Image(width: 640, height: 360), at: .zero)
    #expect(record.decodes.count == 21)
    #expect(record.decodes.prefix(2).map(\.number) == [500, 510])
    #expect(record.decodes.last?.number == nil)
    #expect(record.firstDecode == .zero)
    let similarity = record.measureSimilarity()
    #expect((1...2).contains(similarity.count))
    #expect(similarity.allSatisfy { $0 == 1 })
    #expect(record.measureSimilarity().isEmpty)
  }

  @Test("Sound is kept from its beginning, and its peak from before")
  func sound() {
    let record = ReceivedRecord(seconds: 1)
    record.played([0, 0], at: .zero)
    #expect(record.heard.isEmpty)
    #expect(record.peak == -.infinity)
    record.played([0, -32_768], at: .zero + .milliseconds(20))
    record.played([1, 0], at: .zero + .milliseconds(40))
    #expect(record.heard == [0, -32_768, 1, 0])
    #expect(record.firstSound == .zero + .milliseconds(20))
    #expect(abs(record.peak) < 0.01)
    for _ in 0..<60 { record.played([Int16](repeating: 1, count: 960), at: .zero) }
    #expect(record.heard.count <= 48_000)
  }

  @Test("Portions of frames are searched for in packets and in a process's memory")
  func search() throws {
    var random = RandomSource(seed: 5)
    let frames = (0..<20).map { _ in
      SentRecord.EncodedFrame(track: .microphone, bytes: random.bytes(100))
    }
    let tiny = SentRecord.EncodedFrame(track: .microphone, bytes: [1, 2])
    var search = SFUSearch(frames + frames.prefix(3) + [tiny])
    #expect(search.result.searchedFrames == 20)
    #expect(search.result.loggedFrames == 24)
    // Our own memory holds the frames.
    try search.searchMemory(of: getpid())
    #expect(search.result.memoryWindows > 0)
    #expect(search.result.memoryBytes > 0)
    #expect(search.result.foundFrames == 0)
  }

  @Test("LiveKit protocol §4 (26): the MLS group gives both sides a key, and another one after a commit")
  func group() throws {
    var group = try CallGroup.make(first: "anna#phone", second: "ben#laptop")
    let first = try group.callKey()
    #expect(first.count == 32)
    #expect(group.epoch == 1)
    try group.rekey()
    #expect(group.epoch == 2)
    #expect(try group.callKey() != first)
  }
}
