import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeWebServer
import PalbeWire
import Synchronization

/// One client's WebSocket between the web server's thread and the worker that owns its room.
///
/// ## Overview
///
/// The web server's thread calls `received` and `closed`; the worker calls `send` and `close`. What the
/// client sends goes to the worker's inbox. A client whose unread messages pile up is closed, so that it
/// fills neither memory nor the inbox of others.
///
/// Messages are protobuf in binary frames. From a client's first text frame on it gets JSON in text frames: the worker
/// never sees the difference.
final class SignalingConnection: WebSocketHandler {
  /// Bytes of this client that may wait in the inbox, each message counted with its overhead: at most 256 messages.
  static let waitingByteLimit = 1 << 20
  static let messageOverhead = 4_096

  let id: ConnectionID
  private let socket: WebSocket
  private let inbox: WorkerInbox
  private let waitingByteCount = Atomic<Int>(0)
  private let isEnding = Atomic<Bool>(false)
  private let speaksJSON = Atomic<Bool>(false)

  init(socket: WebSocket, inbox: WorkerInbox) {
    id = ConnectionID(socket.id)
    self.socket = socket
    self.inbox = inbox
  }

  // MARK: The web server's thread

  func opened() {}

  func received(binary bytes: [UInt8]) {
    guard !isEnding.load(ordering: .relaxed) else { return }
    let cost = bytes.count + Self.messageOverhead
    guard waitingByteCount.wrappingAdd(cost, ordering: .relaxed).newValue <= Self.waitingByteLimit else {
      return end(code: 1_008, reason: "too many messages at once")
    }
    guard inbox.post(.signal(self, bytes)) else {
      return end(code: 1_013, reason: "the server is overloaded")
    }
  }

  func received(text: String) {
    guard !isEnding.load(ordering: .relaxed) else { return }
    speaksJSON.store(true, ordering: .relaxed)
    // The worker drops what it cannot read, and so do we.
    do throws(JSONError) {
      received(binary: try LiveKit.SignalRequest(json: text).serialized())
    } catch {}
  }

  func closed(_ closure: WebSocketClosure) { inbox.post(.closed(id)) }

  private func end(code: UInt16, reason: String) {
    isEnding.store(true, ordering: .relaxed)
    socket.close(code: code, reason: reason)
  }

  // MARK: The worker's thread

  /// The worker has read a message of this many bytes.
  func taken(byteCount: Int) {
    waitingByteCount.wrappingSubtract(byteCount + Self.messageOverhead, ordering: .relaxed)
  }

  func send(_ message: [UInt8]) {
    guard speaksJSON.load(ordering: .relaxed) else {
      socket.send(binary: message)
      return
    }
    do throws(ProtobufError) {
      socket.send(text: try LiveKit.SignalResponse(serialized: message).json())
    } catch {}  // It is our own, and reads.
  }

  func close() { end(code: 1_000, reason: "") }
}
