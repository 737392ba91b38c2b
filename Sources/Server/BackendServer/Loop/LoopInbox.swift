import PalbeBackendCore
import PalbeEventLoop
import Synchronization

/// What waits for the loop's thread, bounded in requests and in bytes. Connections that closed are taken without a bound:
/// there are no more of them than there were connections.
final class LoopInbox: Sendable {
  /// A request and who waits for its answer.
  struct Item: Sendable {
    let call: BackendCall
    /// How long an empty queue may be waited on; nil answers at once.
    let patience: LoopPatience?
    let answer: BackendLoop.Answer
  }

  /// All that waited.
  struct Contents {
    var items: [Item] = []
    var closed: [ConnectionID] = []
    var copies: [Copy] = []
    /// Other limits from now on.
    var limits: BackendLimits?
    var isDraining = false
    var isStopping = false
  }

  /// A copy of the store that somebody waits for.
  struct Copy: Sendable {
    let path: String
    let done: @Sendable (StoreFault?) -> Void
  }

  private struct State {
    var contents = Contents()
    var byteCount = 0
  }

  let wakeUp: WakeUp
  private let countLimit: Int
  private let byteLimit: Int
  private let state = Mutex(State())

  init(countLimit: Int, byteLimit: Int) throws(SystemError) {
    self.countLimit = countLimit
    self.byteLimit = byteLimit
    wakeUp = try WakeUp()
  }

  /// False when too much waits or the loop ends.
  func add(_ item: Item) -> Bool {
    let bytes = item.call.request.byteCount
    let (isTaken, mustWake) = state.withLock { state in
      guard !state.contents.isStopping, state.contents.items.count < countLimit,
        state.contents.items.isEmpty || bytes <= byteLimit - state.byteCount
      else { return (false, false) }
      state.byteCount += bytes
      state.contents.items.append(item)
      return (true, state.contents.items.count == 1)
    }
    if mustWake { wakeUp.wake() }
    return isTaken
  }

  func addClosed(_ connection: ConnectionID) {
    let mustWake = state.withLock { state in
      state.contents.closed.append(connection)
      return state.contents.closed.count == 1
    }
    if mustWake { wakeUp.wake() }
  }

  func addCopy(_ copy: Copy) {
    let isTaken = state.withLock { state in
      guard !state.contents.isStopping else { return false }
      state.contents.copies.append(copy)
      return true
    }
    if isTaken { wakeUp.wake() } else { copy.done(.failed) }
  }

  /// Other limits for what comes from now on.
  func setLimits(_ limits: BackendLimits) {
    state.withLock { $0.contents.limits = limits }
    wakeUp.wake()
  }

  /// Nobody waits for rows from now on.
  func drain() {
    state.withLock { $0.contents.isDraining = true }
    wakeUp.wake()
  }

  /// Nothing more is taken; what waits is still done.
  func stop() {
    state.withLock { $0.contents.isStopping = true }
    wakeUp.wake()
  }

  var count: Int { state.withLock { $0.contents.items.count } }

  /// All that waits, taken out.
  func take() -> Contents {
    wakeUp.drain()
    return state.withLock { state in
      defer {
        state.contents.items = []
        state.contents.closed = []
        state.contents.copies = []
        state.contents.limits = nil
        state.byteCount = 0
      }
      return state.contents
    }
  }
}

extension BackendRequest {
  /// About how many bytes of memory it holds while it waits.
  var byteCount: Int {
    switch self {
    case .send(_, let message): message.blob.count
    case .commit(_, let bundle): bundle.byteCount
    case .createGroup(let founding), .reset(_, _, let founding):
      founding.groupInfo.count + (founding.commit?.byteCount ?? 0)
    case .publishKeyPackages(let packages, _): packages.reduce(0) { $0 + $1.count }
    case .enrolDevice(let enrolment): enrolment.keyPackages.reduce(0) { $0 + $1.count }
    default: 0
    }
  }
}

extension CommitBundle {
  fileprivate var byteCount: Int {
    [commit, welcome ?? [], groupInfo, ratchetTree ?? []].reduce(0) { $0 + $1.count }
  }
}
