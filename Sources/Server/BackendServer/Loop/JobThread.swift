import CPalbeLinux
import Glibc
import PalbeEventLoop

/// A thread that does what may take long, one job after another, so that nobody else waits for it.
final class JobThread: Sendable {
  /// Nil ends the thread.
  private typealias Job = (@Sendable () -> Void)?
  private let mailbox: Mailbox<Job>
  private let thread: WorkerThread

  /// Who leaves jobs bounds them: this many are never there.
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
      // What they hold goes now, not with the next ones: it may be the open file of an attachment that is deleted.
      jobs.removeAll(keepingCapacity: true)
    }
  }

  /// Does it after what was asked for before; false when the thread has ended.
  @discardableResult
  func run(_ job: @escaping @Sendable () -> Void) -> Bool { mailbox.send(job) }

  /// Takes no more jobs.
  func close() {
    // A second call finds the mailbox closed.
    mailbox.send(nil)
    mailbox.close()
  }

  /// Does what is left, and ends.
  func stop() {
    close()
    thread.join()
  }
}
