import Foundation
import Glibc
import Palbe
import PalbeChatClient
import PalbeMessaging

/// The process of a device that much comes to: this program once more, with the models that an app binds to.
@MainActor
final class ChatHost {
  nonisolated static let command = "host-chat"
  private let process = Process()
  private let input = Pipe()
  private let output: FileHandle

  init(_ server: String, _ folder: String) throws {
    let pipe = Pipe()
    output = pipe.fileHandleForReading
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe")
    process.arguments = [Self.command, server, folder]
    process.standardInput = input
    process.standardOutput = pipe
    try process.run()
  }

  func line() throws -> String {
    var bytes: [UInt8] = []
    while let byte = try output.read(upToCount: 1)?.first, byte != 0x0a { bytes.append(byte) }
    guard !bytes.isEmpty else { throw ServerBenchFailure("the receiver's process ended") }
    return String(decoding: bytes, as: UTF8.self)
  }

  func tell(_ line: String) throws {
    try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
  }

  func end() {
    guard process.isRunning else { return }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  // MARK: That process

  /// Says who it is; from "go" on it measures until so many messages are there as the next line says.
  static func run(_ server: String, _ folder: String) async {
    do {
      let pb = PalbeNamespace(host: try ChatClient.host(server: server, folder: folder))
      let user = try await pb.auth.signIn(email: "host@example.org", password: "correct horse host")
      try await pb.messaging.start()
      put(user.id)
      let lines = AsyncStream<String> { continuation in
        Thread.detachNewThread {
          while let line = readLine() { continuation.yield(line) }
          continuation.finish()
        }
      }
      var next = lines.makeAsyncIterator()
      _ = await next.next()
      let start = nanoseconds()
      let began = mainNanoseconds()
      var early = 0
      var looked = nanoseconds()
      let wanted = Wanted()
      Task {
        // One of its own: the stream is the same.
        var next = lines.makeAsyncIterator()
        wanted.count = await next.next().flatMap { Int($0) }
      }
      var last = (count: 0, at: nanoseconds())
      while true {
        try await Task.sleep(for: .milliseconds(250))
        looked = nanoseconds()
        let count = pb.messaging.chats.all.reduce(0) { $0 + $1.unreadCount }
        if count != last.count { last = (count, looked) }
        if early == 0, looked - start > 15_000_000_000 { early = residentByteCount() }
        guard let target = wanted.count else { continue }
        if count >= target || looked - last.at > 20_000_000_000 {
          let seconds = Double(last.at - start) / 1e9
          let now = residentByteCount()
          put(
            "\(count) \(Double(mainNanoseconds() - began) / 1e9) \(early == 0 ? now : early) \(now) \(seconds)"
          )
          break
        }
      }
      _ = await next.next()
      exit(0)
    } catch {
      complain("palbe-bench: \(error)\n")
      exit(1)
    }
  }

  private final class Wanted { var count: Int? }

  /// Time that the thread of the main actor spent on a processor.
  private static func mainNanoseconds() -> UInt64 { processorNanoseconds() }

  private static func put(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
}
