import CPalbeLinux
import Glibc
import PalbeEventLoop
import PalbeServerObservation
import PalbeUnits
import Synchronization

/// A UNIX socket in the data folder by which `palbe-server backup` asks the server that runs: a line in, a line out.
///
/// Only the server's own user reaches the folder, and only it is heard.
final class ControlSocket: Sendable {
  private static let lineByteLimit = 4_096
  private let path: String
  private let descriptor: Int32
  private let wakeUp: WakeUp
  private let isStopping = Atomic<Bool>(false)
  private let thread = Mutex<WorkerThread?>(nil)

  /// - Parameter answer: makes the line that answers a line; may take its time, one request at a time.
  init(path: String, answer: @escaping @Sendable (String) -> String) throws(SystemError) {
    self.path = path
    descriptor = LocalSocket.make()
    guard descriptor >= 0, LocalSocket.listen(descriptor, at: path) else { throw SystemError(.bind) }
    wakeUp = try WakeUp()
    let new = try WorkerThread(name: "control") { [self] in run(answer) }
    thread.withLock { $0 = new }
  }

  func stop() {
    isStopping.store(true, ordering: .relaxed)
    wakeUp.wake()
    let joined = thread.withLock { thread in
      defer { thread = nil }
      return thread
    }
    guard let joined else { return }
    joined.join()
    close(descriptor)
    unlink(path)
  }

  private func run(_ answer: (String) -> String) {
    while !isStopping.load(ordering: .relaxed) {
      var ready = [
        pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
        pollfd(fd: wakeUp.fileDescriptor, events: Int16(POLLIN), revents: 0),
      ]
      poll(&ready, 2, -1)
      guard ready[0].revents != 0 else { continue }
      let peer = accept(descriptor, nil, nil)
      guard peer >= 0 else { continue }
      defer { close(peer) }
      LocalSocket.setTimeout(peer, .seconds(5))
      guard LocalSocket.isOwnUser(peer), let line = LocalSocket.readLine(peer, limit: Self.lineByteLimit)
      else {
        continue
      }
      let bytes = Array((answer(line) + "\n").utf8)
      send(peer, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
  }

  /// Asks the server of a folder, and waits for its answer; nil when none listens.
  static func ask(_ line: String, at path: String) -> String? {
    let descriptor = LocalSocket.make()
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    guard LocalSocket.connect(descriptor, to: path) else { return nil }
    let bytes = Array((line + "\n").utf8)
    guard send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else { return nil }
    return LocalSocket.readLine(descriptor, limit: lineByteLimit)
  }
}
