import Foundation
import Glibc
import PalbeUnits
import Synchronization

/// Everything that a demo started, so that all of it ends whatever happens.
final class Cleanup: Sendable {
  /// A folder that could not be made. Its description is one line for a person.
  struct FolderError: Error, Equatable, CustomStringConvertible {
    var parent: String
    var errno: Int32

    var description: String {
      "cannot make a folder in \(parent) (\(String(cString: strerror(errno))))"
    }
  }

  private struct State {
    var participants: [DemoParticipant] = []
    var processes: [ChildProcess] = []
    var folders: [String] = []
    var isClosed = false
  }

  private let state = Mutex(State())

  /// An empty list.
  init() {}

  /// A process that must be ended; ended at once when all is being ended already.
  func add(_ process: ChildProcess) {
    let isClosed = state.withLock { state in
      state.processes.append(process)
      return state.isClosed
    }
    if isClosed { process.stop() }
  }

  /// The exit status of a process that ended before it was told to; nil when all run.
  var endedProcess: Int32? {
    state.withLock { $0.processes }.lazy.compactMap { $0.wasStopped ? nil : $0.exitStatus }.first
  }

  /// A participant who must hang up. Throws `CancellationError` when all is being ended already.
  func add(_ participant: DemoParticipant) throws {
    let isClosed = state.withLock { state in
      if !state.isClosed { state.participants.append(participant) }
      return state.isClosed
    }
    if isClosed { throw CancellationError() }
  }

  /// A new folder that only we can read, removed at the end.
  ///
  /// Throws `FolderError`, or `CancellationError` when all is being ended already.
  func makeFolder(in parent: String = FileManager.default.temporaryDirectory.path) throws -> String {
    let folder = "\(parent)/palbe-demo-\(UUID().uuidString)"
    // Made and noted in one step, so that nobody ends all in between and leaves it behind.
    try state.withLock { state in
      guard !state.isClosed else { throw CancellationError() }
      guard mkdir(folder, 0o700) == 0 else { throw FolderError(parent: parent, errno: errno) }
      state.folders.append(folder)
    }
    return folder
  }

  /// Hangs up all participants, for at most `patience`, then ends all processes and removes all folders.
  ///
  /// - Returns: whether every participant hung up in time; the threads of one who did not may still run.
  @discardableResult
  func endAll(patience: Duration = .seconds(5)) async -> Bool {
    let participants = state.withLock { state in
      state.isClosed = true
      return state.participants
    }
    let pending = Countdown(participants.count)
    for participant in participants {
      Task.detached {
        await participant.stop()
        pending.decrement()
      }
    }
    let deadline = ContinuousClock.now + patience
    while pending.value > 0, ContinuousClock.now < deadline {
      // Not `Task.sleep`: this must also wait in a cancelled task.
      await Task.detached { try? await Task.sleep(for: .milliseconds(5)) }.value
    }
    let (processes, folders) = state.withLock { state in
      defer { (state.processes, state.folders, state.participants) = ([], [], []) }
      return (state.processes, state.folders)
    }
    for process in processes { process.stop() }
    for folder in folders { try? FileManager.default.removeItem(atPath: folder) }
    return pending.value == 0
  }

  private final class Countdown: Sendable {
    private let count: Mutex<Int>
    init(_ value: Int) { count = Mutex(value) }
    var value: Int { count.withLock { $0 } }
    func decrement() { count.withLock { $0 -= 1 } }
  }
}
