import PalbeMLSMessages
import PalbeMLSSimulator
import Testing

@Suite("Random histories of MLS groups over a network that loses, repeats, reorders and changes")
struct HistoryTests {
  @Test("Every member of an epoch agrees, and every message is read as promised", arguments: [1, 2, 3])
  func histories(seed: UInt64) throws {
    let report = try History(HistorySettings(seed: seed, steps: 120, maximumMembers: 16)).run()
    print(report.summary)
  }
}
