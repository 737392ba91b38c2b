import PalbeMLSMessages
import PalbeMLSSimulator
import Testing

@Suite("Random histories of MLS groups: a bad network, rivals, restarts")
struct HistoryTests {
  @Test("Members of an epoch agree, a message is read once or as promised not at all, and no group is stuck")
  func histories() throws {
    var total = HistoryReport()
    for seed in UInt64(1)...6 {
      total.add(try History(HistorySettings(seed: seed, steps: 90, maximumMembers: 16)).run())
    }
    print("simulator:", total.summary)
    #expect(total.histories == 6)
    // A history in which nothing happens would prove nothing.
    let counts = [
      total.commits, total.refusedCommits, total.messagesRead, total.messagesReadLate, total.messagesRefused,
      total.tampered, total.proposals, total.joins, total.externalJoins, total.removals, total.restarts,
      total.failedWrites, total.settlements,
    ]
    #expect(counts.allSatisfy { $0 > 0 }, "\(total.summary)")
  }

  @Test("In every suite", arguments: [2, 3, 4, 5, 6, 7] as [UInt16])
  func suites(suite: UInt16) throws {
    let settings = HistorySettings(
      seed: UInt64(suite), steps: 25, maximumMembers: 4, suite: CipherSuite(rawValue: suite))
    #expect(try History(settings).run().commits > 0)
  }

  @Test("The same seed lives the same history, event for event, and another seed another")
  func replay() throws {
    func trace(_ seed: UInt64, _ suite: UInt16) throws -> [UInt8] {
      let history = History(
        HistorySettings(seed: seed, steps: 40, maximumMembers: 8, suite: CipherSuite(rawValue: suite)))
      _ = try history.run()
      return history.traceHash
    }
    #expect(try trace(7, 1) == trace(7, 1))
    // Signatures of this suite differ from run to run; what happens does not.
    #expect(try trace(7, 2) == trace(7, 2))
    #expect(try trace(7, 1) != trace(8, 1))
  }

  @Test("A failure tells the seed, the step, the last events, and the command that shows it again")
  func failure() {
    let failure = SimulationFailure(
      settings: HistorySettings(seed: 5, steps: 90, maximumMembers: 16, suite: CipherSuite(rawValue: 3)),
      step: 12,
      reason: "two epochs", events: ["11: a", "12: b"])
    #expect(
      failure.description == """
        seed 5, step 12: two epochs
          11: a
          12: b
        replay: mls-simulator run --seed 5 --histories 1 --steps 90 --members 16 --suite 3
        """)
  }
}
