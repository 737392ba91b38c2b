import Foundation
import Glibc
import PalbeCall
import PalbeCallLab
import PalbeEventLoop
import PalbeMediaFiles
import Testing

@Suite("palbe-call join", .serialized, .timeLimit(.minutes(1)))
struct JoinTests {
  // A signal that nobody sends.
  private let signals: SignalWatch
  private let folder: String

  init() throws {
    signals = try SignalWatch([.user2])
    folder = NSTemporaryDirectory() + "palbe-join-\(UUID().uuidString)"
  }

  @Test("two join, hear and see each other, and each records the other")
  func records() async throws {
    let sfu = try TestSFU()
    defer {
      sfu.stop()
      try? FileManager.default.removeItem(atPath: folder)
    }
    let key = [UInt8](repeating: 3, count: 32)
    var ada = JoinOptions(url: sfu.url, token: try TestSFU.token("ada#phone"), key: key)
    ada.seconds = 2
    ada.recordPath = folder + "/ada"
    var bob = JoinOptions(url: sfu.url, token: try TestSFU.token("../bob"), key: key)
    bob.seconds = 2
    bob.recordPath = folder + "/bob"
    async let first = Join.run(ada, signals: signals)
    async let second = Join.run(bob, signals: signals)
    #expect(await first == 0)
    #expect(await second == 0)
    // An identity names a file and never a folder.
    let picture = try Y4MReader(path: folder + "/ada/_bob-video.y4m")
    #expect(picture.header.width == 640 && picture.header.height == 360 && picture.pictureCount > 0)
    let sound = try WAVReader(path: folder + "/bob/ada_phone-audio.wav")
    #expect(sound.header.sampleRate == 48_000 && sound.header.channels == 1)
    #expect(Set(try FileManager.default.contentsOfDirectory(atPath: folder)) == ["ada", "bob"])
  }

  @Test("what cannot be joined or sent is one line and status 2")
  func refusals() async throws {
    let sfu = try TestSFU()
    defer { sfu.stop() }
    let token = try TestSFU.token("ada")
    var missing = JoinOptions(url: sfu.url, token: token, key: nil)
    missing.audioPath = folder + "/missing.wav"
    var malformed = JoinOptions(url: sfu.url, token: token, key: nil)
    malformed.videoPath = #filePath
    var unwritable = JoinOptions(url: sfu.url, token: token, key: nil)
    unwritable.recordPath = #filePath
    // Nobody writes to it: opening it would wait for ever.
    var pipe = JoinOptions(url: sfu.url, token: token, key: nil)
    pipe.audioPath = NSTemporaryDirectory() + "palbe-join-\(UUID().uuidString).fifo"
    let pipePath = try #require(pipe.audioPath)
    try #require(mkfifo(pipePath, 0o600) == 0)
    defer { unlink(pipePath) }
    let expired = JoinOptions(url: sfu.url, token: try TestSFU.token("ada", secret: "other"), key: nil)
    let wrongKey = JoinOptions(url: sfu.url, token: token, key: [1, 2, 3])
    for options in [missing, malformed, unwritable, pipe, expired, wrongKey] {
      #expect(await Join.run(options, signals: signals) == 2)
    }
  }

  @Test("a recording that the disk did not take is status 1")
  func fullDisk() async throws {
    let sfu = try TestSFU()
    defer {
      sfu.stop()
      try? FileManager.default.removeItem(atPath: folder)
    }
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: folder + "/ada-video.y4m", withDestinationPath: "/dev/full")
    let ada = try Party("ada", at: sfu.url, room: "full", isEncrypted: false)
    try await ada.engine.start()
    var bob = JoinOptions(url: sfu.url, token: try TestSFU.token("bob", room: "full"), key: nil)
    bob.seconds = 2
    bob.recordPath = folder
    #expect(await Join.run(bob, signals: signals) == 1)
    await ada.engine.stop()
  }

  @Test("the server's end of the call is status 1")
  func ended() async throws {
    let sfu = try TestSFU()
    let options = JoinOptions(url: sfu.url, token: try TestSFU.token("ada", room: "ended"), key: nil)
    let watcher = try Party("watcher", at: sfu.url, room: "ended", isEncrypted: false)
    try await watcher.engine.start()
    async let code = Join.run(options, signals: signals)
    await watcher.wait { $0.pictures.count > 3 }
    sfu.stop()
    #expect(await code == 1)
    await watcher.engine.stop()
  }
}
