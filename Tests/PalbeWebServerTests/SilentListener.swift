import CPalbeLinux
import CPalbeWebSockets
import Glibc

/// Accepts TCP connections in the kernel and says nothing, or answers one upgrade and then says nothing.
final class SilentListener: @unchecked Sendable {
  private let descriptor: Int32
  let port: UInt16

  init(answersUpgrade: Bool = false) throws {
    let descriptor = palbe_tcp_socket(0)
    self.descriptor = descriptor
    var storage = sockaddr_storage()
    var length = palbe_address_encode(&storage, 0, 0x7f00_0001 << 32, 0, 0, 0)
    guard palbe_bind(descriptor, &storage, length) == 0, listen(descriptor, 8) == 0,
      palbe_getsockname(descriptor, &storage, &length) == 0
    else { throw RawClient.TestError.noConnection(errno) }
    var high: UInt64 = 0
    var low: UInt64 = 0
    var port: UInt16 = 0
    _ = palbe_address_decode(&storage, &high, &low, &port)
    self.port = port
    guard answersUpgrade else { return }
    var thread = pthread_t()
    pthread_create(
      &thread, nil, { answerUpgrade(Int32(Int(bitPattern: $0))) },
      UnsafeMutableRawPointer(bitPattern: Int(descriptor)))
    pthread_detach(thread)
  }

  deinit { close(descriptor) }
}

private func answerUpgrade(_ listener: Int32) -> UnsafeMutableRawPointer? {
  let connection = accept(listener, nil, nil)
  var buffer = [UInt8](repeating: 0, count: 4_096)
  let count = recv(connection, &buffer, buffer.count, 0)
  let request = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
  guard let line = request.split(separator: "\r\n").first(where: { $0.hasPrefix("Sec-WebSocket-Key: ") })
  else {
    return nil
  }
  let answer =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    + "Sec-WebSocket-Accept: \(acceptValue(String(line.dropFirst(19))))\r\n\r\n"
  let bytes = Array(answer.utf8)
  _ = send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  // Reads pings without answering until the client gives up.
  while recv(connection, &buffer, buffer.count, 0) > 0 {}
  close(connection)
  return nil
}

/// RFC 6455 §4.2.2: what proves that a server has understood the key.
private func acceptValue(_ key: String) -> String {
  let text = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
  var hash = [UInt8](repeating: 0, count: 20)
  lws_SHA1(text, text.count, &hash)
  var encoded = [CChar](repeating: 0, count: 64)
  let count = hash.withUnsafeBytes { raw in
    lws_b64_encode_string(raw.baseAddress?.assumingMemoryBound(to: CChar.self), 20, &encoded, 64)
  }
  return String(decoding: encoded.prefix(Int(count)).map(UInt8.init(bitPattern:)), as: UTF8.self)
}
