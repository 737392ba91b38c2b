import Foundation
import Glibc
import Synchronization

/// Stands between clients and a server on loopback, and keeps every byte that goes either way.
public final class RecordingRelay: Sendable {
  private let listener: Int32
  private let target: UInt16
  public let port: UInt16
  private struct State {
    var recorded: [[UInt8]] = []
    var sockets: [Int32] = []
  }
  private let state = Mutex(State())

  /// - Parameter target: the port of the server on 127.0.0.1.
  public init(to target: UInt16) throws {
    self.target = target
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = Self.loopback(0)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let bound = listener
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(bound, $0, size) == 0 && listen(bound, 64) == 0 && getsockname(bound, $0, &size) == 0
      }
    }
    guard isListening else { throw CocoaError(.fileWriteUnknown) }
    port = UInt16(bigEndian: address.sin_port)
    Thread.detachNewThread { [self] in accept() }
  }

  private static func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    return address
  }

  /// What each direction of each connection carried.
  public var streams: [[UInt8]] { state.withLock { $0.recorded } }

  /// Closes all connections.
  public func stop() {
    shutdown(listener, Int32(SHUT_RDWR))
    for socket in state.withLock({ $0.sockets }) { shutdown(socket, Int32(SHUT_RDWR)) }
  }

  private func accept() {
    while true {
      let client = Glibc.accept(listener, nil, nil)
      guard client >= 0 else { return }
      let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
      var address = Self.loopback(target)
      let code = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      guard code == 0 else {
        close(client)
        close(server)
        continue
      }
      state.withLock { $0.sockets += [client, server] }
      for (from, to) in [(client, server), (server, client)] {
        let index = state.withLock { state in
          state.recorded.append([])
          return state.recorded.count - 1
        }
        Thread.detachNewThread { [self] in carry(from, to, index) }
      }
    }
  }

  private func carry(_ from: Int32, _ to: Int32, _ index: Int) {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = recv(from, &buffer, buffer.count, 0)
      guard count > 0 else { break }
      state.withLock { $0.recorded[index] += buffer[..<count] }
      var sent = 0
      while sent < count {
        let more = buffer[sent..<count].withUnsafeBytes {
          send(to, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard more > 0 else { break }
        sent += more
      }
      guard sent == count else { break }
    }
    shutdown(to, Int32(SHUT_WR))
  }
}

extension RecordingRelay {
  /// The streams with what clients sent over WebSockets taken out of its masks (RFC 6455 §5.3).
  public var unmasked: [[UInt8]] { streams.map { Self.unmask($0) } }

  private static func unmask(_ stream: [UInt8]) -> [UInt8] {
    let end = Array("\r\n\r\n".utf8)
    let head = stream.prefix(8_192)
    guard head.starts(with: Array("GET ".utf8)),
      let body = (0..<max(0, head.count - 3)).first(where: { Array(head[$0..<$0 + 4]) == end }).map({ $0 + 4 }
      ),
      String(decoding: head[..<body], as: UTF8.self).lowercased().contains("upgrade: websocket")
    else { return stream }
    var result = Array(stream[..<body])
    var place = body
    while place + 2 <= stream.count {
      var count = Int(stream[place + 1] & 0x7f)
      let isMasked = stream[place + 1] & 0x80 != 0
      var start = place + 2
      let more = count == 126 ? 2 : count == 127 ? 8 : 0
      if more > 0 {
        guard start + more <= stream.count else { break }
        count = stream[start..<start + more].reduce(0) { $0 << 8 | Int($1) }
        start += more
      }
      var mask: [UInt8] = [0, 0, 0, 0]
      if isMasked {
        guard start + 4 <= stream.count else { break }
        mask = Array(stream[start..<start + 4])
        start += 4
      }
      let last = min(stream.count, start + count)
      for index in start..<max(start, last) { result.append(stream[index] ^ mask[(index - start) % 4]) }
      place = start + count
    }
    return result
  }
}
