import PalbeCrypto
import PalbeMLS
import PalbeMLSMessages
import PalbeUnits
import PalbeWire

/// One group's life, made up from a seed: members that commit at the same time, a server that takes the first commit
/// of an epoch, a network that loses, repeats, reorders and changes what it carries, members that are away for long.
///
///     let report = try History(HistorySettings(seed: 7)).run()
///
/// Each time a member enters an epoch it is compared with all others that did; each application message must be read
/// exactly when the limits promise it, and once. A promise that does not hold ends the history with
/// `SimulationFailure`, which tells how to see it again.
public final class History {
  let settings: HistorySettings
  let suite: CipherSuite
  let groupID: [UInt8]
  /// Where the size of the group tends to.
  let targetSize: Int
  /// Decides what happens.
  var choice: RandomSource
  /// Makes keys.
  var keys: RandomSource
  var now: UInt64 = 1_800_000_000
  var step = 0
  var members: [SimulatedMember] = []
  var server = SimulatedServer()
  var sent: [SentMessage] = []
  var epochs: [EpochRecord] = []
  /// Who published a key package, by reference.
  var keyPackageOwners: [[UInt8]: Int] = [:]
  var preSharedKeys: [(id: [UInt8], key: [UInt8])] = []
  var report = HistoryReport()
  /// True once no member is left that could go on.
  var isDead = false
  private var events: [String] = []
  private var trace = [UInt8](repeating: 0, count: 32)

  /// What all members of an epoch must agree on.
  struct EpochRecord {
    /// Who is in the tree, by leaf.
    let roster: [RosterEntry]
    var agreed: Agreement?
  }

  struct RosterEntry: Hashable {
    let leaf: LeafIndex
    let member: Int
  }

  struct Agreement: Equatable {
    /// Holds the tree hash and the confirmed transcript hash.
    let context: GroupContext
    let authenticator: [UInt8]
    let exported: [UInt8]
  }

  /// A history that has not begun.
  public init(_ settings: HistorySettings) {
    self.settings = settings
    choice = RandomSource(seed: settings.seed)
    keys = RandomSource(seed: ~settings.seed)
    let drawn: [UInt16] = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 2, 4, 5, 6, 7]
    let place = Int(choice.next() % UInt64(drawn.count))
    let suite = settings.suite ?? CipherSuite(rawValue: drawn[place])
    self.suite = suite
    // Suites other than 1 and 3 cost up to 30 times as much.
    let isCheap = [1, 3].contains(suite.rawValue)
    let limit = max(2, isCheap ? settings.maximumMembers : min(settings.maximumMembers, 8))
    let shape = choice.next() % 4
    let most = shape == 0 ? limit : max(2, limit / 4)
    targetSize = max(2, most - Int(choice.next() % UInt64((most + 1) / 2)))
    groupID = keys.bytes(Int(choice.next() % 3) * 8 + 1)
  }

  /// Hash over all events so far: the same for the same settings.
  public var traceHash: [UInt8] { trace }

  /// Signatures of these suites are deterministic, so that whole epochs replay bit for bit.
  var isReproducible: Bool { [1, 3, 4, 6].contains(suite.rawValue) }

  /// Lives the history to its end.
  public func run() throws(SimulationFailure) -> HistoryReport {
    try begin()
    let period = pick(60...160)
    while step < settings.steps, !isDead {
      step += 1
      now += chance(40) ? 0 : UInt64(pick(0...20))
      if chance(2) { now += UInt64(pick(0...4_000)) }
      try act()
      try deliverDue()
      if step % period == 0 { try settle() }
    }
    if !isDead { try settle() }
    if !isDead, chance(30) { try close() }
    for member in members { count(member.membership) }
    report.histories = 1
    report.steps = step
    return report
  }

  // MARK: Choices

  func pick(_ range: ClosedRange<Int>) -> Int {
    range.lowerBound + Int(choice.next() % UInt64(range.count))
  }

  func chance(_ percent: Int) -> Bool { choice.next() % 100 < percent }

  func pick<T>(from list: [T]) -> T? { list.isEmpty ? nil : list[pick(0...list.count - 1)] }

  func shuffled<T>(_ list: [T]) -> [T] {
    var result = list
    for index in result.indices.dropFirst() { result.swapAt(index, pick(0...index)) }
    return result
  }

  func clock(_ member: SimulatedMember) -> UInt64 { now + member.clockSkew }

  // MARK: Telling

  func note(_ event: String) {
    let line = "\(step): \(event)"
    trace = SHA256.hash(trace + Array(line.utf8))
    events.append(line)
    if events.count > 120 { events.removeFirst(60) }
  }

  func failure(_ reason: String) -> SimulationFailure {
    SimulationFailure(settings: settings, step: step, reason: reason, events: events.suffix(60))
  }

  func expect(_ condition: Bool, _ reason: @autoclosure () -> String) throws(SimulationFailure) {
    if !condition { throw failure(reason()) }
  }

  /// Runs what must succeed.
  func must<Result>(
    _ what: @autoclosure () -> String, _ body: () throws(MLSError) -> Result
  ) throws(SimulationFailure) -> Result {
    do { return try body() } catch { throw failure("\(what()): \(error)") }
  }

  // MARK: The beginning

  private func makeConfiguration() -> MLSConfiguration {
    var configuration = MLSConfiguration()
    configuration.handshakeFormat = chance(50) ? .publicMessage : .privateMessage
    let blocks = [0, 1, 7, 32, 256, 1_000]
    configuration.padding = pick(from: blocks).map { $0 == 0 ? .none : .multiple(of: $0) } ?? .none
    configuration.ratchetTreeInWelcome = chance(60)
    configuration.sendsGREASE = chance(30)
    if chance(30) {
      configuration.ratchetLimits = RatchetLimits(maximumForwardDistance: 20, maximumSkippedKeys: 14)
    }
    configuration.maximumPastEpochs = chance(70) ? 5 : pick(0...8)
    configuration.pastEpochSeconds = chance(70) ? 7 * 86_400 : UInt64(pick(0...3_000))
    return configuration
  }

  func newMember() throws(SimulationFailure) -> SimulatedMember {
    let number = members.count
    let configuration = makeConfiguration()
    let skew = UInt64(pick(0...900))
    let suite = suite
    let client = try must("a client") { () throws(MLSError) in
      try MLSClient(
        cipherSuite: suite, credential: .basic(identity: Array("member \(number)".utf8)),
        configuration: configuration, using: &keys)
    }
    let member = SimulatedMember(number: number, client: client, clockSkew: skew)
    members.append(member)
    return member
  }

  private func begin() throws(SimulationFailure) {
    for number in 0..<3 { preSharedKeys.append((id: [UInt8(number)], key: keys.bytes(32))) }
    let founder = try newMember()
    let lifetime = lifetime(for: founder)
    let groupID = groupID
    let group: MLSGroup
    do throws(MLSError) {
      group = try MLSGroup.create(
        groupID: groupID, client: founder.client, lifetime: lifetime, using: &keys)
    } catch { throw failure("create: \(error)") }
    epochs = [EpochRecord(roster: [RosterEntry(leaf: LeafIndex(0), member: 0)])]
    note("suite \(suite.rawValue), up to \(targetSize) members")
    try start(founder, try store(group, of: founder))
  }

  func lifetime(for member: SimulatedMember) -> Lifetime {
    Lifetime(notBefore: clock(member) - 3_600, notAfter: clock(member) + 86_400)
  }

  // MARK: What happens

  private func act() throws(SimulationFailure) {
    let undecided = members.filter {
      $0.state == .inside && $0.offlineUntil <= step && $0.pending != nil
    }
    if let member = pick(from: undecided), chance(40) { try resolve(member) }
    let present = members.filter { $0.state == .inside && $0.offlineUntil <= step }
    guard let actor = pick(from: present) else { return }
    switch pick(0...99) {
    case 0..<36: try talk(actor)
    case 36..<62:
      // Several at once: all but one lose.
      var committers = [actor]
      if chance(35) {
        for other in shuffled(present.filter { $0 !== actor }).prefix(pick(1...3)) {
          committers.append(other)
        }
      }
      for committer in committers where committer.pending == nil { _ = try makeCommit(committer) }
      for committer in shuffled(committers) where committer.pending != nil { try send(committer) }
    case 62..<78: try propose(actor)
    case 78..<82:
      actor.offlineUntil = step + (chance(15) ? pick(50...300) : pick(3...40))
      note("\(actor.number) is away until \(actor.offlineUntil)")
    case 82..<85: try catchUp(actor)
    case 85..<88: try restart(actor)
    case 88..<91:
      let outside = members.filter { $0.state == .outside || $0.state == .removed }
      if let joiner = pick(from: outside), roster.count < targetSize { try joinExternally(joiner) }
    case 91..<96:
      if let joiner = pick(from: members.filter({ $0.state == .lost })) { try joinExternally(joiner) }
    default: try publishGroupInfo(actor)
    }
  }

  /// Who is in the tree by the server's last epoch.
  var roster: [RosterEntry] { epochs.last?.roster ?? [] }

  private func talk(_ member: SimulatedMember) throws(SimulationFailure) {
    guard let membership = member.membership else { return }
    let count = chance(6) ? pick(10...40) : pick(1...3)
    for _ in 0..<count {
      let data = keys.bytes(pick(0...60))
      let leaf = membership.ownLeaf
      let message = try must("encrypt by \(member.number)") { () throws(MLSError) in
        try membership.change { group throws(MLSError) in
          try group.encrypt(data, authenticatedData: [7], using: &keys)
        }
      }
      let record = SentMessage(
        number: sent.count, kind: .application, message: message, sender: member.number, life: member.life,
        leaf: leaf, epoch: membership.epoch, generation: member.generation, data: data)
      member.generation += 1
      sent.append(record)
      report.messages += 1
      note("\(member.number) sends message \(record.number) in epoch \(record.epoch)")
      // A send that fails is lost to all; nobody may mind.
      if !chance(4) { push(record) }
    }
  }
}
