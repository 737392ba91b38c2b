import CPalbeLinux
import Glibc
import PalbeEventLoop

/// A thread that does what may wait for a disk, one job after another, so that nobody else waits for it.
final class DiskThread: Sendable {
  /// Nil ends the thread.
  private typealias Job = (@Sendable () -> Void)?
  private let mailbox: Mailbox<Job>
  private let thread: WorkerThread

  /// Streams have a job or a few at a time, so this many are never there.
  private static let capacity = 1 << 20

  init(name: String) throws(SystemError) {
    let mailbox = try Mailbox<Job>(capacity: Self.capacity)
    self.mailbox = mailbox
    thread = try WorkerThread(name: name) { Self.run(mailbox) }
  }

  private static func run(_ mailbox: Mailbox<Job>) {
    var jobs: [Job] = []
    while true {
      var ready = pollfd(fd: mailbox.wakeUp.fileDescriptor, events: Int16(POLLIN), revents: 0)
      poll(&ready, 1, -1)
      mailbox.drain(into: &jobs)
      for job in jobs {
        guard let job else { return }
        job()
      }
    }
  }

  /// Does it after what was asked for before; false when the thread has ended.
  @discardableResult
  func run(_ job: @escaping @Sendable () -> Void) -> Bool { mailbox.send(job) }

  /// Does what is left, and ends.
  func stop() {
    // A second call finds the mailbox closed, and the thread gone.
    mailbox.send(nil)
    mailbox.close()
    thread.join()
  }
}
