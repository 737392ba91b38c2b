import Glibc
import PalbeChatKit
import PalbeCommandLine
import Synchronization

/// Writes to standard error.
func complain(_ text: String) { put(text, to: STDERR_FILENO) }

/// What many histories came to.
struct Tally: Sendable {
  var histories = 0
  var operations = 0
  var crashes = 0
  var commits = 0
  var messages = 0
  var failures: [(seed: UInt64, problems: [String])] = []

  /// Of one history.
  init(_ history: ChatHistory, _ problems: [String]) {
    (histories, operations, crashes) = (1, history.operations, history.crashes)
    (commits, messages) = (history.world.ledger.commits, history.world.ledger.messages)
    if !problems.isEmpty { failures = [(history.story.seed, problems)] }
  }

  init() {}

  mutating func add(_ other: Tally) {
    histories += other.histories
    operations += other.operations
    crashes += other.crashes
    commits += other.commits
    messages += other.messages
    failures += other.failures
  }

  var summary: String {
    "\(histories) seeds, \(operations) operations, \(crashes) crashes, \(commits) commits, \(messages) messages"
  }
}

/// The histories underway, for who must say what was being lived when the process traps: a seed a job.
private let underway = Array(0..<64).map { _ in Slot() }

private final class Slot: Sendable {
  let seed = Atomic<UInt64>(0)
}

/// Histories from one seed on, several at once.
struct Campaign {
  var first: UInt64 = 1
  var count: UInt64 = 300
  var minutes: Int?
  var jobs = 2
  var shrinks = false
  var stops = false
  var requiresAll = false
  /// Histories lived for a point that no other one hit.
  var hunts: UInt64 = 1_000
  var isVerbose = false
  var checksProfiles = false

  /// What the jobs share.
  private final class Shared: Sendable {
    private let next: Atomic<UInt64>
    private let tally = Mutex(Tally())

    init(from first: UInt64) { next = Atomic(first) }

    var hasFailed: Bool { tally.withLock { !$0.failures.isEmpty } }
    func takeSeed() -> UInt64 { next.wrappingAdd(1, ordering: .relaxed).oldValue }
    func add(_ tally: Tally) { self.tally.withLock { $0.add(tally) } }
    var result: Tally { tally.withLock { $0 } }
  }

  /// What the jobs share that hunt.
  private final class Hunt: Sendable {
    private let next = Atomic<Int>(0)
    private let found = Mutex<[String]>([])

    func takePlace() -> Int { next.wrappingAdd(1, ordering: .relaxed).oldValue }
    func add(_ problem: String) { found.withLock { $0.append(problem) } }
    var problems: [String] { found.withLock { $0 } }
  }

  /// Returns the exit code.
  func run() async -> Int32 {
    reportTraps()
    let registry = CrashRegistry()
    let shared = Shared(from: first)
    let end = minutes.map { ContinuousClock.now + .seconds(60 * $0) }
    await withTaskGroup(of: Void.self) { group in
      for job in 0..<jobs { group.addTask { live(shared, registry, until: end, job: job) } }
    }
    return report(shared.result, registry, requiresAll ? await hunt(registry) : [])
  }

  /// Rare points are waited for: every process of a history ends there when it comes there, and groups are founded anew
  /// too. What is wrong in the history that hit one, and would not be without the end of the process.
  private func hunt(_ registry: CrashRegistry) async -> [String] {
    let missed = CrashPoint.all.filter { !registry.hit.contains($0.name) }
    let shared = Hunt()
    await withTaskGroup(of: Void.self) { group in
      for job in 0..<jobs {
        group.addTask {
          while true {
            let place = shared.takePlace()
            guard place < missed.count else { return }
            if let problem = hunt(missed[place], registry, job: job) { shared.add(problem) }
          }
        }
      }
    }
    return shared.problems
  }

  private func hunt(_ point: CrashPoint, _ registry: CrashRegistry, job: Int) -> String? {
    for seed in 1...hunts {
      underway[job].seed.store(seed, ordering: .relaxed)
      let story = ChatStory.make(seed: seed, isRare: true)
      guard var history = try? ChatHistory(story, registry: registry) else { return nil }
      history.hunted = point
      let problems = history.run()
      guard registry.hit.contains(point.name) else { continue }
      complain("\(point.name): seed \(seed)")
      guard let problem = problems.first, isSound(story) else { return nil }
      return "chat-simulator replay \(seed) --hunt '\(point.name)': \(problem)"
    }
    return nil
  }

  private func live(
    _ shared: Shared, _ registry: CrashRegistry, until end: ContinuousClock.Instant?, job: Int
  ) {
    while true {
      let seed = shared.takeSeed()
      if seed - first >= count, end.map({ ContinuousClock.now >= $0 }) ?? true { return }
      if stops, shared.hasFailed { return }
      underway[job].seed.store(seed, ordering: .relaxed)
      guard var history = try? ChatHistory(.make(seed: seed), registry: registry) else { return }
      history.checksProfiles = checksProfiles
      let problems = history.run()
      if isVerbose || !problems.isEmpty {
        complain("seed \(seed): \(problems.first.map { String($0.prefix(400)) } ?? "ok")")
      }
      shared.add(Tally(history, problems))
    }
  }

  private func report(_ tally: Tally, _ registry: CrashRegistry, _ hunted: [String]) -> Int32 {
    print(tally.summary)
    let missed = CrashPoint.all.map(\.name).filter { !registry.hit.contains($0) }
    let unknown = registry.seen.subtracting(CrashPoint.kinds).sorted()
    print("\(CrashPoint.all.count - missed.count) of \(CrashPoint.all.count) crash points hit")
    for point in missed { print("not hit: \(point)") }
    for kind in unknown { print("not in the register: \(kind)") }
    for problem in hunted { print("FAILED \(problem)") }
    if let worst = tally.failures.min(by: { $0.seed < $1.seed }) {
      print("\(tally.failures.count) histories failed; the first: chat-simulator replay \(worst.seed)")
      if shrinks { printShrunk(.make(seed: worst.seed)) }
      return 1
    }
    return !hunted.isEmpty || requiresAll && !(missed.isEmpty && unknown.isEmpty) ? 1 : 0
  }
}

private func problems(of story: ChatStory) -> [String] {
  guard var history = try? ChatHistory(story) else { return ["no server"] }
  return history.run()
}

private func isSound(_ story: ChatStory) -> Bool { problems(of: story).isEmpty }

private func printShrunk(_ story: ChatStory) {
  let small = story.shrunk { !problems(of: $0).isEmpty }
  print("# \(problems(of: small).first ?? "fails no more")")
  print(small.text, terminator: "")
}

/// Lives one history and prints it; the exit code.
/// - Parameter hunted: where every process of the history of a seed ends, which then has what is rare too.
func replay(_ name: String, shrinks: Bool, traces: Bool, hunted: String? = nil) -> Int32 {
  reportTraps()
  if let hunted, CrashPoint(name: hunted) == nil {
    complain("chat-simulator: '\(hunted)' is no point of the register, such as 'group+outbox after'")
    return 2
  }
  guard
    let story = UInt64(name).map({ .make(seed: $0, isRare: hunted != nil) })
      ?? file(name).flatMap({ ChatStory(text: $0) })
  else {
    complain("chat-simulator: '\(name)' is no seed and no file of a history")
    return 2
  }
  underway[0].seed.store(story.seed, ordering: .relaxed)
  if shrinks {
    guard !problems(of: story).isEmpty else {
      print("nothing fails")
      return 0
    }
    printShrunk(story)
    return 1
  }
  guard var history = try? ChatHistory(story) else { return 2 }
  history.world.traces = traces
  history.hunted = hunted.flatMap { CrashPoint(name: $0) }
  let problems = history.run()
  for line in history.log { print(line) }
  for problem in problems { print("FAILED \(problem)") }
  print(
    "\(history.operations) operations, \(history.crashes) crashes, \(history.world.ledger.messages) messages")
  return problems.isEmpty ? 0 : 1
}

/// A text file without its lines of comment; nil for none.
private func file(_ path: String) -> String? {
  guard let file = fopen(path, "r") else { return nil }
  defer { fclose(file) }
  var bytes: [UInt8] = []
  while case let byte = fgetc(file), byte != EOF { bytes.append(UInt8(truncatingIfNeeded: byte)) }
  return String(decoding: bytes, as: UTF8.self).split(separator: "\n").filter { !$0.hasPrefix("#") }
    .joined(separator: "\n")
}

/// A trap ends all jobs at once: at least it says which histories were being lived.
private func reportTraps() {
  for signal in [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS] {
    Glibc.signal(signal) { number in
      for slot in underway {
        let seed = slot.seed.load(ordering: .relaxed)
        if seed != 0 { complain("trapped while living seed \(seed)") }
      }
      Glibc.signal(number, SIG_DFL)
      raise(number)
    }
  }
}
