// Lives random histories of MLS groups; the same seed lives the same one again.
import Glibc
import PalbeCommandLine
import PalbeMLSMessages
import PalbeMLSSimulator
import PalbeUnits

let program = Program(
  name: "mls-simulator", version: Release.version,
  summary: "random histories of MLS groups over a bad network, each step checked",
  commands: [
    Command(
      name: "run", summary: "lives histories with seeds from --seed on, and counts what happened",
      options: [
        .value("--seed", "N", "seed of the first history", default: "1"),
        .value("--histories", "N", "how many, 1 to 1000000", default: "100"),
        .value("--steps", "N", "steps of each, 1 to 1000000", default: "400"),
        .value("--members", "N", "the largest group, 2 to 256", default: "64"),
        .value("--suite", "N", "cipher suite 1 to 7 instead of a drawn one"),
        .flag("--verbose", "a line for each history"),
      ],
      examples: ["mls-simulator run", "mls-simulator run --seed 7 --histories 1 --verbose"])
  ])

/// Writes to standard error.
func complain(_ text: String) { put(text, to: STDERR_FILENO) }

do throws(ArgumentError) {
  switch try program.request(CommandLine.arguments.dropFirst()) {
  case .print(let text): print(text)
  case .run(_, let arguments):
    let seed = try arguments.integer("--seed", in: 0...Int.max) ?? 1
    let histories = try arguments.integer("--histories", in: 1...1_000_000) ?? 100
    let steps = try arguments.integer("--steps", in: 1...1_000_000) ?? 400
    let most = try arguments.integer("--members", in: 2...256) ?? 64
    let suite = try arguments.integer("--suite", in: 1...7)
    var total = HistoryReport()
    for index in 0..<histories {
      let settings = HistorySettings(
        seed: UInt64(seed) &+ UInt64(index), steps: steps, maximumMembers: most,
        suite: suite.map { CipherSuite(rawValue: UInt16($0)) })
      do throws(SimulationFailure) {
        let report = try History(settings).run()
        total.add(report)
        if arguments.has("--verbose") { complain("seed \(settings.seed): \(report.summary)") }
      } catch {
        complain("\(error)")
        exit(1)
      }
    }
    print("all members agreed after every step of \(histories) histories")
    print(total.summary)
  }
} catch {
  complain("mls-simulator: \(error)")
  exit(2)
}
