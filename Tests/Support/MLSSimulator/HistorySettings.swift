public import PalbeMLSMessages

/// What a history is made from: the same settings give the same history, event for event.
public struct HistorySettings: Sendable, Hashable {
  /// Every choice and every key follows from it.
  public var seed: UInt64
  /// How many steps: in each, something happens and what is due is delivered.
  public var steps: Int
  /// The group grows to a size drawn from 2 to this.
  public var maximumMembers: Int
  /// Nil: drawn, mostly suite 1, which costs least.
  public var suite: CipherSuite?

  /// Settings as given.
  public init(seed: UInt64, steps: Int = 400, maximumMembers: Int = 64, suite: CipherSuite? = nil) {
    self.seed = seed
    self.steps = steps
    self.maximumMembers = maximumMembers
    self.suite = suite
  }
}

/// What happened in a history, or in several.
public struct HistoryReport: Sendable, Hashable {
  /// Histories that ran to their end.
  public var histories = 0
  /// Steps.
  public var steps = 0
  /// Commits that the server took.
  public var commits = 0
  /// Commits that lost their epoch to another.
  public var refusedCommits = 0
  /// Commits that a member processed, its own included.
  public var commitsProcessed = 0
  /// Proposals sent.
  public var proposals = 0
  /// Application messages sent.
  public var messages = 0
  /// Application messages read; each by each member at most once.
  public var messagesRead = 0
  /// Of those, in an epoch that was over.
  public var messagesReadLate = 0
  /// Messages that came again, or after their keys had to be gone, and were refused.
  public var messagesRefused = 0
  /// Changed copies, all refused.
  public var tampered = 0
  /// Joins by a Welcome.
  public var joins = 0
  /// Joins by an external commit.
  public var externalJoins = 0
  /// Members that learned of their removal.
  public var removals = 0
  /// Members that were loaded from storage again.
  public var restarts = 0
  /// Writes to storage that failed, after which nothing had changed.
  public var failedWrites = 0
  /// Times that all members were brought together and compared.
  public var settlements = 0
  /// The largest group.
  public var largestGroup = 0

  /// Nothing happened yet.
  public init() {}

  /// Adds another history's counts.
  public mutating func add(_ other: HistoryReport) {
    histories += other.histories
    steps += other.steps
    commits += other.commits
    refusedCommits += other.refusedCommits
    commitsProcessed += other.commitsProcessed
    proposals += other.proposals
    messages += other.messages
    messagesRead += other.messagesRead
    messagesReadLate += other.messagesReadLate
    messagesRefused += other.messagesRefused
    tampered += other.tampered
    joins += other.joins
    externalJoins += other.externalJoins
    removals += other.removals
    restarts += other.restarts
    failedWrites += other.failedWrites
    settlements += other.settlements
    largestGroup = max(largestGroup, other.largestGroup)
  }

  /// One line.
  public var summary: String {
    "\(histories) histories, \(steps) steps: \(commits) commits (\(refusedCommits) lost the race, processed "
      + "\(commitsProcessed) times), \(proposals) proposals, \(messages) messages (read \(messagesRead) times, "
      + "\(messagesReadLate) late, \(messagesRefused) refused), \(tampered) tampered copies, \(joins) joins, "
      + "\(externalJoins) external joins, \(removals) removals, \(restarts) restarts, \(failedWrites) failed "
      + "writes, \(settlements) settlements, up to \(largestGroup) members"
  }
}

/// A promise that did not hold, and how to see it again.
public struct SimulationFailure: Error, CustomStringConvertible {
  /// The history's settings.
  public let settings: HistorySettings
  /// The step that it happened in.
  public let step: Int
  /// What was expected and what came.
  public let reason: String
  /// The last events before it, the youngest last.
  public let events: [String]

  /// All parts.
  public init(settings: HistorySettings, step: Int, reason: String, events: [String]) {
    self.settings = settings
    self.step = step
    self.reason = reason
    self.events = events
  }

  public var description: String {
    "seed \(settings.seed), step \(step): \(reason)\n"
      + events.map { "  " + $0 }.joined(separator: "\n")
      + "\nreplay: mls-simulator run --seed \(settings.seed) --histories 1 --steps \(settings.steps) "
      + "--members \(settings.maximumMembers)"
      + (settings.suite.map { " --suite \($0.rawValue)" } ?? "")
  }
}
