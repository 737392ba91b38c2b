import Foundation
import PalbeCallLab
import PalbeCommandLine
import PalbeEventLoop
import PalbeWire

/// `palbe-call join`.
func join(_ arguments: ParsedArguments, _ signals: SignalWatch) async throws -> Int32 {
  let url = try arguments.required("--url")
  let token = try arguments.required("--token")
  let key = try callKey(arguments)
  var options = JoinOptions(url: url, token: token, key: key)
  options.audioPath = arguments.string("--audio")
  options.videoPath = arguments.string("--video")
  options.listens = arguments.has("--listen")
  if options.listens, options.audioPath != nil || options.videoPath != nil {
    throw ArgumentError("'--listen' sends nothing: leave '--audio' and '--video' out")
  }
  options.recordPath = arguments.string("--record")
  options.seconds = try arguments.integer("--seconds", in: 1...86_400)
  return await Join.run(options, signals: signals)
}

private func callKey(_ arguments: ParsedArguments) throws(ArgumentError) -> [UInt8]? {
  guard let text = arguments.string("--key") else {
    guard arguments.has("--no-e2ee") else {
      throw ArgumentError("say how the call is protected: '--key HEX' or '--no-e2ee'")
    }
    return nil
  }
  guard !arguments.has("--no-e2ee") else {
    throw ArgumentError("'--key' and '--no-e2ee' exclude each other")
  }
  guard let key = Hex.decode(text) else { throw ArgumentError("'--key' is not hexadecimal") }
  guard key.count == 32 else {
    throw ArgumentError("'--key' has \(key.count) bytes; a call key has 32 (64 hexadecimal digits)")
  }
  return key
}

/// `palbe-call demo`.
func demo(_ arguments: ParsedArguments) async throws -> Int32 {
  var options = DemoOptions()
  options.seconds = try arguments.integer("--seconds", in: 3...600) ?? options.seconds
  options.reportPath = arguments.string("--report")
  options.sfuPath = arguments.string("--sfu")
  options.setupRuns = try arguments.integer("--setups", in: 1...50) ?? options.setupRuns
  return await Demo.run(options)
}

/// `palbe-call token`.
func token(_ arguments: ParsedArguments) throws -> Int32 {
  for name in ["--room", "--identity"] {
    guard try !arguments.required(name).isEmpty else { throw ArgumentError("'\(name)' is empty") }
  }
  var token = TestToken(
    room: try arguments.required("--room"), identity: try arguments.required("--identity"))
  token.name = arguments.string("--name") ?? ""
  token.validSeconds = Int64(
    try arguments.integer("--valid", in: -1_000_000_000...1_000_000_000) ?? 21_600)
  let key = try APIKey(parsing: try arguments.required("--key"), of: "--key")
  print(
    try token.signed(key: key.name, secret: key.secret, now: Int64(Date().timeIntervalSince1970)))
  return 0
}
