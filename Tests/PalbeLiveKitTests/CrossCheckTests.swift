import Foundation
import PalbeLiveKit
import PalbeProtobuf
import PalbeTestKit
import PalbeWire
import Testing

/// The other implementation itself, where it is installed.
struct CrossCheckTests {
  /// The interpreter in `PALBE_PYTHON`, that of the real clients, or any other; nil without the package.
  static let python: String? = {
    let places: [String?] = [
      ProcessInfo.processInfo.environment["PALBE_PYTHON"],
      Vectors.projectRoot.appendingPathComponent(".venv/real-clients/bin/python").path, "/usr/bin/python3",
    ]
    return places.compactMap { $0 }.first { path in
      FileManager.default.isExecutableFile(atPath: path)
        && (try? run(path, ["-c", "import livekit.protocol.rtc"], input: ""))?.status == 0
    }
  }()

  static func run(_ path: String, _ arguments: [String], input: String) throws -> (
    status: Int32, output: String
  ) {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    // Files, because a pipe fills up when nobody reads it.
    let (lines, output) = (folder.appendingPathComponent("in"), folder.appendingPathComponent("out"))
    try Data(input.utf8).write(to: lines)
    try Data().write(to: output)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    process.standardInput = try FileHandle(forReadingFrom: lines)
    process.standardOutput = try FileHandle(forWritingTo: output)
    process.standardError = FileHandle.nullDevice
    try process.run()
    let alarm = DispatchWorkItem { process.terminate() }
    DispatchQueue.global().asyncAfter(deadline: .now() + 60, execute: alarm)
    process.waitUntilExit()
    alarm.cancel()
    return (process.terminationStatus, String(decoding: try Data(contentsOf: output), as: UTF8.self))
  }

  @Test(
    "PyPI livekit-protocol reads every message as we write it, in protobuf, JSON and Twirp's JSON",
    .enabled(
      if: python != nil,
      "skipped: no Python with PyPI livekit-protocol; pip install it and name the interpreter in PALBE_PYTHON"
    ))
  func everyMessage() throws {
    var lines = ""
    for golden in GoldenMessage.messages {
      let codec = try #require(Codec.byName[golden.name])
      let fields = [
        golden.name, Hex.encode(try codec.again(golden.bytes)), try codec.json(golden.bytes, .compact),
        try codec.json(golden.bytes, .twirp),
      ]
      lines += fields.joined(separator: "\t") + "\n"
    }
    let script = Vectors.projectRoot.appendingPathComponent("Tests/PalbeLiveKitTests/CrossCheck/messages.py")
    let result = try Self.run(try #require(Self.python), [script.path, "check"], input: lines)
    #expect(result.status == 0, "\(result.output)")
    #expect(result.output == "\(GoldenMessage.messages.count) lines, 0 wrong\n")
  }
}
