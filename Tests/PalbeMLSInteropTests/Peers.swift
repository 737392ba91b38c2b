import Foundation
import Glibc
import PalbeMLSInterop
import PalbeUnits
import Testing

/// Something that answers lines: a session here, or another process.
protocol Peer: AnyObject {
  func answer(_ line: String) throws -> String
}

struct PeerError: Error, CustomStringConvertible {
  let description: String
}

extension Peer {
  /// Sends one request and returns its whole answer.
  func send(_ method: String, _ parameters: [String: JSON] = [:]) throws -> JSON {
    let request = JSON.object(["id": 7, "method": .string(method), "params": .object(parameters)])
    let line = try answer(request.line)
    let answer = try #require(JSON.parse(line), "not JSON: \(line)")
    #expect(answer["id"] == 7)
    return answer
  }

  /// The result of a request that must succeed.
  @discardableResult
  func ask(_ method: String, _ parameters: [String: JSON] = [:]) throws -> JSON {
    let answer = try send(method, parameters)
    guard answer["ok"] == .bool(true), let result = answer["result"] else {
      throw PeerError(description: "\(method): \(answer.line)")
    }
    return result
  }

  /// The kind of error of a request that must fail.
  func refusal(_ method: String, _ parameters: [String: JSON] = [:]) throws -> String? {
    let answer = try send(method, parameters)
    #expect(answer["ok"] == .bool(false))
    #expect(answer["error"]?.text?.isEmpty == false)
    return answer["kind"]?.text
  }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral,
  ExpressibleByDictionaryLiteral
{
  public init(stringLiteral value: String) { self = .string(value) }
  public init(integerLiteral value: Int64) { self = .integer(value) }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(arrayLiteral elements: JSON...) { self = .array(elements) }
  public init(dictionaryLiteral elements: (String, JSON)...) {
    self = .object(Dictionary(uniqueKeysWithValues: elements))
  }
}

/// A session in this process, with a seed and a clock that stands.
final class LocalPeer: Peer {
  private let session: InteropSession

  init(seed: UInt64, storage: String? = nil) {
    session = InteropSession(random: RandomSource(seed: seed), storage: storage) { 1_800_000_000 }
  }

  func answer(_ line: String) -> String { session.answer(line) }
}

/// The `mls-interop` executable.
final class ProcessPeer: Peer {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private var buffer = Data()

  /// Built beside the tests.
  static let executable = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    .appendingPathComponent("mls-interop")

  init(storage: String? = nil) throws {
    process.executableURL = Self.executable
    if let storage { process.arguments = ["--storage", storage] }
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }

  func answer(_ line: String) throws -> String {
    try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
    while true {
      if let end = buffer.firstIndex(of: 10) {
        let line = String(decoding: buffer[..<end], as: UTF8.self)
        buffer = Data(buffer[(end + 1)...])
        return line
      }
      let more = output.fileHandleForReading.availableData
      guard !more.isEmpty else { throw PeerError(description: "mls-interop ended") }
      buffer.append(more)
    }
  }

  deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

  /// Writes a request and does not wait for the answer.
  func write(_ line: String) throws {
    try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
  }

  /// Ends it in the middle of what it does, after so many answers; gives all that it answered in whole.
  func killAfter(lines: Int) throws -> [String] {
    while buffer.count(where: { $0 == 10 }) < lines {
      let more = output.fileHandleForReading.availableData
      guard !more.isEmpty else { throw PeerError(description: "mls-interop ended") }
      buffer.append(more)
    }
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
    buffer.append(try output.fileHandleForReading.readToEnd() ?? Data())
    var lines = String(decoding: buffer, as: UTF8.self).split(
      separator: "\n", omittingEmptySubsequences: false)
    lines.removeLast()
    return lines.map(String.init)
  }

  /// Ends its input and returns its status.
  func finish() throws -> Int32 {
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
    return process.terminationStatus
  }
}
