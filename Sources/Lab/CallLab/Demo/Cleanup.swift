import Foundation
import PalbeUnits
import Synchronization

/// Everything that a demo started, so that all of it ends whatever happens.
final class Cleanup: Sendable {
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

  /// A folder that must be removed.
  func add(folder: String) { state.withLock { $0.folders.append(folder) } }

  /// A new folder that only we can read, removed at the end.
  func makeFolder() throws -> String {
    let folder = FileManager.default.temporaryDirectory.path + "/palbe-demo-\(UUID().uuidString)"
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    add(folder: folder)
    return folder
  }

  /// Hangs up all participants, for at most `patience`, then ends all processes and removes all folders.
  func endAll(patience: Duration = .seconds(5)) async {
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
  }

  private final class Countdown: Sendable {
    private let count: Mutex<Int>
    init(_ value: Int) { count = Mutex(value) }
    var value: Int { count.withLock { $0 } }
    func decrement() { count.withLock { $0 -= 1 } }
  }
}
