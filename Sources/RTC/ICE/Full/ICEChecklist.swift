import PalbeUnits

/// The two ends of a path: a socket of ours and an address of the peer's.
struct ICEPath: Hashable, Sendable, BitwiseCopyable {
  var base: Int
  var remote: SocketAddress

  /// A TCP connection of ours rather than a socket that sends anywhere.
  var isStream: Bool { remote.transport == .tcp }
}

/// A candidate pair (RFC 8445 §6.1.2). Pairs of one socket and one remote address are one path, so one pair.
struct ICEPair: Sendable {
  /// RFC 8445 §6.1.2.6, without `frozen`: with one component that state only delays checks.
  enum State: Sendable { case waiting, inProgress, succeeded, failed }

  let path: ICEPath
  let local: SocketAddress
  let localPriority: UInt32
  var remotePriority: UInt32
  var state = State.waiting
  /// Our address as the peer saw it in its last answer.
  var mapped: SocketAddress?
  /// Nominated and working.
  var isNominated = false
  /// Controlled: the peer nominated the pair before our own check of it was answered.
  var nominateOnSuccess = false

  /// RFC 8445 §6.1.2.3, for either role.
  func priority(_ role: ICERole) -> UInt64 {
    let (controlling, controlled) =
      role == .controlling ? (localPriority, remotePriority) : (remotePriority, localPriority)
    // Both are below 2^31 (`insert`), so that the sum fits.
    return UInt64(min(controlling, controlled)) << 32 + 2 * UInt64(max(controlling, controlled))
      + (controlling > controlled ? 1 : 0)
  }
}

/// The pairs of one component, best first, never more than `limit`.
struct ICEChecklist: Sendable {
  /// RFC 8445 §6.1.2.5 names 100 as the default.
  static let limit = 100

  private(set) var pairs: [ICEPair] = []
  /// Paths to check before all others (RFC 8445 §6.1.4.1), oldest first.
  private(set) var triggered: [ICEPath] = []

  func index(of path: ICEPath) -> Int? { pairs.firstIndex { $0.path == path } }

  subscript(index: Int) -> ICEPair {
    get { pairs[index] }
    set { pairs[index] = newValue }
  }

  /// Adds a pair unless its path is there already, in which case a better remote priority replaces the old one.
  /// The worst untried pair makes room.
  mutating func insert(
    _ path: ICEPath, local: ICECandidate, remotePriority: UInt32, role: ICERole
  ) {
    let remotePriority = min(remotePriority, 0x7fff_ffff)
    if let index = index(of: path) {
      pairs[index].remotePriority = max(pairs[index].remotePriority, remotePriority)
    } else {
      let priority = min(local.priority, 0x7fff_ffff)
      pairs.append(
        ICEPair(path: path, local: local.address, localPriority: priority, remotePriority: remotePriority))
    }
    sort(role)
    guard pairs.count > Self.limit, let worst = pairs.lastIndex(where: { $0.state != .succeeded }) else {
      return
    }
    let removed = pairs.remove(at: worst)
    triggered.removeAll { $0 == removed.path }
  }

  /// Puts the pairs in order for a role; after a role switch too.
  mutating func sort(_ role: ICERole) { pairs.sort { $0.priority(role) > $1.priority(role) } }

  /// Asks for a check of `path` before all others.
  mutating func trigger(_ path: ICEPath) {
    guard let index = index(of: path) else { return }
    pairs[index].state = .waiting
    if !triggered.contains(path) { triggered.append(path) }
  }

  /// The next path to check, taken out of the queue and put in progress: triggered ones, then the best that waits.
  mutating func next(streams: Bool) -> ICEPath? {
    while !triggered.isEmpty {
      let path = triggered.removeFirst()
      if let index = index(of: path), pairs[index].state == .waiting {
        pairs[index].state = .inProgress
        return path
      }
    }
    guard let index = pairs.firstIndex(where: { $0.state == .waiting && (streams || !$0.path.isStream) })
    else { return nil }
    pairs[index].state = .inProgress
    return pairs[index].path
  }

  func hasWaiting(streams: Bool) -> Bool {
    pairs.contains { $0.state == .waiting && $0.path.isStream == streams }
  }
  /// Pairs over UDP that may work.
  var hasDatagrams: Bool { pairs.contains { !$0.path.isStream && $0.state != .failed } }
  var unfinishedCount: Int { pairs.count { $0.state == .waiting || $0.state == .inProgress } }

  /// What media uses: the best nominated pair, else the best that works.
  var best: ICEPair? {
    pairs.first { $0.isNominated && $0.state == .succeeded } ?? pairs.first { $0.state == .succeeded }
  }
}
