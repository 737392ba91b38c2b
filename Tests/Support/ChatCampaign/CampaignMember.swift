import Foundation
import Glibc
import PalbeChatClient
import Synchronization

/// The process of one client, as the campaign sees it: lines in, lines out.
final class CampaignMember: @unchecked Sendable {
  let index: Int
  private let server: String
  private let folder: String
  private let seed: UInt64
  private let interval: Double
  private var process: Process?
  private var input: Pipe?
  private var life = 0
  /// What came and nobody asked for yet; filled by a thread of the process' own.
  private let lines = Mutex<[String]>([])
  private let complained = Mutex<[String]>([])
  var complaints: [String] { complained.withLock { $0 } }

  init(_ index: Int, server: String, folder: String, seed: UInt64, interval: Double) {
    (self.index, self.server, self.folder, self.seed, self.interval) = (index, server, folder, seed, interval)
  }

  func start() throws {
    life += 1
    let process = Process()
    let (input, output) = (Pipe(), Pipe())
    // The campaign's own program once more.
    process.executableURL = URL(fileURLWithPath: CampaignClient.program)
    process.arguments = [
      CampaignClient.command, server, folder, "\(index)", "\(life)", "\(seed)", "\(interval)",
    ]
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.standardError
    lines.withLock { $0 = [] }
    try process.run()
    let descriptor = dup(output.fileHandleForReading.fileDescriptor)
    Thread.detachNewThread { [weak self] in self?.read(descriptor) }
    (self.process, self.input) = (process, input)
  }

  private func read(_ descriptor: Int32) {
    guard let file = fdopen(descriptor, "r") else { return }
    defer { fclose(file) }
    var line: UnsafeMutablePointer<CChar>?
    var capacity = 0
    defer { free(line) }
    while case let count = getline(&line, &capacity, file), count > 0, let start = line {
      let bytes = UnsafeBufferPointer(start: start, count: count - 1).map { UInt8(bitPattern: $0) }
      let text = String(decoding: bytes, as: UTF8.self)
      if text.hasPrefix("complaint ") {
        complained.withLock { $0.append("client \(index): \(text.dropFirst(10))") }
      } else {
        lines.withLock { $0.append(text) }
      }
    }
  }

  func tell(_ line: String) { try? input?.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8)) }

  func kill() {
    guard let process, process.isRunning else { return }
    Glibc.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  func end() {
    tell("end")
    for _ in 0..<200 where process?.isRunning == true { usleep(50_000) }
    kill()
  }

  /// The rest of the next line that begins with a word.
  func value(of word: String, seconds: Double) throws -> String {
    let end = Date() + seconds
    while Date() < end {
      let found = lines.withLock { lines -> String? in
        guard let index = lines.firstIndex(where: { $0 == word || $0.hasPrefix(word + " ") }) else {
          return nil
        }
        return String(lines.remove(at: index).dropFirst(word.count + 1))
      }
      if let found { return found }
      guard process?.isRunning == true else { throw ChatClient.Failure("client \(index) ended by itself") }
      usleep(5_000)
    }
    throw ChatClient.Failure("client \(index) did not say '\(word)' within \(seconds) s")
  }

  func state() throws -> CampaignState {
    tell("report")
    let text = try value(of: "state", seconds: 120)
    struct Told: Decodable {
      var chats: [String: [[String]]]
      var noted: [[String]]
      var actions: Int
    }
    let told = try JSONDecoder().decode(Told.self, from: Data(text.utf8))
    var state = CampaignState(index: index)
    for (chat, rows) in told.chats {
      state.chats[chat] = rows.map {
        CampaignState.Entry(seq: $0[0], id: $0[1], content: $0[2], isPending: $0[3] == "pending")
      }
    }
    state.noted = told.noted.map { ($0[0], $0[1]) }
    state.actions = told.actions
    return state
  }
}
