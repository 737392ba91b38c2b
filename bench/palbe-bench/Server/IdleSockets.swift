import Glibc
import PalbeAccountsCore
import PalbeBackendCore
import PalbeBackendServer
import PalbeEventLoop
import PalbeUnits
import PalbeWebServer
import PalbeWire
import Synchronization

/// Memory of sockets that wait. The server is a fresh process, so that nothing that was freed before is used again; the
/// clients' ends are here.
enum IdleSockets {
  /// Bytes of memory an idle socket of the delivery server, each of a device that hears its queue and a conversation.
  static func server(_ count: Int, _ progress: (String) -> Void) throws -> Int {
    let folder = try BenchFolder()
    var configuration = BackendServer.Configuration(data: folder.file("data"))
    configuration.loop = BenchWorld.settings
    let server = try BackendServer(configuration, verifier: BenchSessions())
    let world = BenchWorld(loop: server.loop)
    try world.enrol(count)
    for start in stride(from: 0, to: count, by: 100) {
      try world.found(Array(world.devices[start..<min(count, start + 100)]))
    }
    var clients: [[String]] = []
    for group in world.groups {
      let id = Base64.encode(group.mlsID.bytes, alphabet: .url, padded: false)
      for device in group.members {
        guard let name = device.device else { continue }
        clients.append([
          device.user.text, server.tokens.token(user: device.user, device: name), "messaging:device:\(name)",
          "messaging:conv:\(id)",
        ])
      }
    }
    server.stop()
    return try measure(folder.file("data"), clients, progress)
  }

  /// The same of the library's sockets with nobody behind them.
  static func bare(_ count: Int, _ progress: (String) -> Void) throws -> Int {
    try measure("-", [[String]](repeating: ["-", "-"], count: count), progress)
  }

  private static func measure(
    _ folder: String, _ clients: [[String]], _ progress: (String) -> Void
  ) throws -> Int {
    let host = try IdleHost(folder)
    defer { host.end() }
    let before = try host.number()
    var sockets = IdleClients(port: UInt16(try host.number()))
    for (index, client) in clients.enumerated() {
      try sockets.add(client)
      if index % 200 == 0 {
        sockets.answerPings()
        progress("idle sockets: \(index) of \(clients.count)")
      }
    }
    sockets.answerPings()
    let after = try host.ask()
    let open = try host.number()
    guard open == clients.count else {
      throw ServerBenchFailure("\(open) of \(clients.count) sockets are open; the rest were closed meanwhile")
    }
    return max(0, after - before) / max(1, clients.count)
  }
}

/// The server's process: this program once more.
final class IdleHost {
  static let command = "host-idle-sockets"
  private let process: pid_t
  private let input: Int32
  private let output: UnsafeMutablePointer<FILE>

  init(_ folder: String) throws {
    var toChild: [Int32] = [0, 0]
    var fromChild: [Int32] = [0, 0]
    guard pipe(&toChild) == 0, pipe(&fromChild) == 0, let output = fdopen(fromChild[0], "r") else {
      throw ServerBenchFailure("no pipe")
    }
    // The child must not hold its own input open: when this process ends, so does it.
    for end in [toChild[1], fromChild[0]] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, toChild[0], 0)
    posix_spawn_file_actions_adddup2(&actions, fromChild[1], 1)
    var arguments: [UnsafeMutablePointer<CChar>?] = []
    for word in ["palbe-bench", Self.command, folder] { arguments.append(word.withCString { strdup($0) }) }
    arguments.append(nil)
    defer { for argument in arguments { free(argument) } }
    var process = pid_t()
    guard posix_spawn(&process, "/proc/self/exe", &actions, nil, arguments, environ) == 0 else {
      throw ServerBenchFailure("cannot start the server's process")
    }
    (self.process, input, self.output) = (process, toChild[1], output)
    close(toChild[0])
    close(fromChild[1])
  }

  /// The next number that it prints.
  func number() throws -> Int {
    var text = [CChar](repeating: 0, count: 64)
    guard fgets(&text, 64, output) != nil else { throw ServerBenchFailure("the server's process ended") }
    let line = String(decoding: text.prefix { $0 > 32 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return Int(line) ?? 0
  }

  /// How much memory it takes now; the next number is how many sockets are open.
  func ask() throws -> Int {
    var byte = UInt8(ascii: "\n")
    guard write(input, &byte, 1) == 1 else { throw ServerBenchFailure("the server's process ended") }
    return try number()
  }

  func end() {
    close(input)
    fclose(output)
    kill(process, SIGKILL)
    var status: Int32 = 0
    waitpid(process, &status, 0)
  }

  // MARK: That process

  /// Prints its memory and its port; its memory again and its open sockets for each line that it reads.
  static func run(_ folder: String) -> Never {
    _ = try? Host.raiseOpenFileLimit()
    do {
      let port: UInt16
      let kept: Any
      let openCount: () -> Int
      if folder == "-" {
        let nobody = Nobody()
        let web = try WebServer(
          host: "127.0.0.1", port: 0, limits: BackendServer.webLimits, handler: nobody)
        (port, kept, openCount) = (web.port, web, { nobody.count.load(ordering: .relaxed) })
      } else {
        var configuration = BackendServer.Configuration(data: folder)
        configuration.loop = BenchWorld.settings
        // Idle is who says nothing, longer than a client would.
        configuration.realtime.silence = .seconds(3_600)
        let server = try BackendServer(configuration, verifier: BenchSessions())
        (port, kept, openCount) = (server.port, server, { server.hub.count })
      }
      put(residentByteCount())
      put(Int(port))
      while readLine() != nil {
        put(residentByteCount())
        put(openCount())
      }
      withExtendedLifetime(kept) {}
    } catch { complain("palbe-bench: \(error)\n") }
    exit(1)
  }

  private static func put(_ number: Int) {
    let bytes = Array("\(number)\n".utf8)
    _ = write(STDOUT_FILENO, bytes, bytes.count)
  }

  private final class Nobody: WebServerHandler, WebSocketHandler {
    let count = Atomic<Int>(0)
    func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision { .accept(self) }
    func opened() { count.add(1, ordering: .relaxed) }
    func received(binary: [UInt8]) {}
    func received(text: String) {}
    func closed(_ closure: WebSocketClosure) { count.subtract(1, ordering: .relaxed) }
  }
}

/// The clients' ends: descriptors and nothing else.
struct IdleClients: ~Copyable {
  let port: UInt16
  private var held: [pollfd] = []

  init(port: UInt16) { self.port = port }

  deinit { for socket in held { close(socket.fd) } }

  /// Connects as a user's device, and subscribes.
  mutating func add(_ parts: [String]) throws {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else {
      throw ServerBenchFailure("no descriptor left; raise the limit of open files")
    }
    held.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    let code = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard code == 0, parts.count >= 2 else { throw ServerBenchFailure("cannot connect") }
    let head =
      "GET /v1/realtime HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
      + "sec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nsec-websocket-version: 13\r\n"
      + "authorization: Bearer \(parts[0])\r\npalbe-device: \(parts[1])\r\n\r\n"
    try exchange(descriptor, Array(head.utf8))
    for topic in parts.dropFirst(2) {
      let text = Array("{\"type\":\"subscribe\",\"id\":1,\"topic\":\"\(topic)\"}".utf8)
      let length =
        text.count < 126
        ? [0x80 | UInt8(text.count)] : [0xfe, UInt8(text.count >> 8), UInt8(text.count & 255)]
      try exchange(descriptor, [0x81] + length + [0, 0, 0, 0] + text)
    }
  }

  /// Writes, and reads once.
  private func exchange(_ descriptor: Int32, _ bytes: [UInt8]) throws {
    var buffer = [UInt8](repeating: 0, count: 16_384)
    guard send(descriptor, bytes, bytes.count, 0) == bytes.count,
      recv(descriptor, &buffer, buffer.count, 0) > 0
    else { throw ServerBenchFailure("the server closed a socket") }
  }

  /// Reads what has come, and answers with a pong where something has: the sockets stay.
  mutating func answerPings() {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while poll(&held, nfds_t(held.count), 0) > 0 {
      for index in held.indices where held[index].revents != 0 {
        guard recv(held[index].fd, &buffer, buffer.count, 0) > 0 else {
          // One that is closed would be ready for ever; a negative one is passed over.
          close(held[index].fd)
          held[index].fd = -1
          continue
        }
        _ = send(held[index].fd, [0x8a, 0x80, 0, 0, 0, 0] as [UInt8], 6, Int32(MSG_NOSIGNAL))
      }
    }
  }
}
