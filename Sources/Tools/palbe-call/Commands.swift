import Foundation
import PalbeCallLab
import PalbeCommandLine
import PalbeEventLoop
import PalbeWire

/// `palbe-call join`.
func join(_ arguments: ParsedArguments, _ signals: SignalWatch) async throws -> Int32 {
  let url = try arguments.required("--url")
  let token = try arguments.required("--token")
  var options = JoinOptions(url: url, token: token, key: nil)
  switch try encryption(arguments) {
  case .none: break
  case .sframe(let key): options.key = key
  case .liveKit(let passphrase): options.liveKit = passphrase
  }
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

private enum JoinEncryption {
  case none
  case sframe([UInt8])
  case liveKit(LiveKitPassphrase)
}

/// `--key` alone means SFrame and `--no-e2ee` none; `--e2ee` says it in full.
private func encryption(_ arguments: ParsedArguments) throws(ArgumentError) -> JoinEncryption {
  if arguments.has("--key"), arguments.has("--no-e2ee") {
    throw ArgumentError("'--key' and '--no-e2ee' exclude each other")
  }
  let mode =
    arguments.string("--e2ee")
    ?? (arguments.has("--key") ? "sframe" : arguments.has("--no-e2ee") ? "none" : nil)
  guard let mode else {
    throw ArgumentError("say how the call is protected: '--key HEX', '--e2ee livekit' or '--no-e2ee'")
  }
  let others = ["--key", "--no-e2ee", "--passphrase-file", "--kdf"]
  func refuse(except allowed: String...) throws(ArgumentError) {
    if let other = others.first(where: { arguments.has($0) && !allowed.contains($0) }) {
      throw ArgumentError("'--e2ee \(mode)' and '\(other)' exclude each other")
    }
  }
  switch mode {
  case "none":
    try refuse(except: "--no-e2ee")
    return .none
  case "sframe":
    try refuse(except: "--key")
    return .sframe(try callKey(try arguments.required("--key")))
  case "livekit":
    try refuse(except: "--passphrase-file", "--kdf")
    guard let derivation = LiveKitPassphrase.Derivation(rawValue: arguments.string("--kdf") ?? "pbkdf2")
    else {
      throw ArgumentError("'--kdf' is neither 'pbkdf2' nor 'hkdf'")
    }
    return .liveKit(LiveKitPassphrase(path: arguments.string("--passphrase-file"), derivation: derivation))
  default: throw ArgumentError("'--e2ee' is none of 'sframe', 'livekit' and 'none'")
  }
}

private func callKey(_ text: String) throws(ArgumentError) -> [UInt8] {
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
