// Lives random histories of chats: real engines around a real server core in virtual time; the same seed lives the same one
// again.
import Glibc
import PalbeChatKit
import PalbeCommandLine
import PalbeUnits

let program = Program(
  name: "chat-simulator", version: Release.version,
  summary: "random histories of chats over a bad network, with processes that end anywhere",
  commands: [
    Command(
      name: "run", summary: "lives histories with seeds from --from on, and counts what happened",
      options: [
        .value("--from", "N", "seed of the first history", default: "1"),
        .value("--count", "N", "how many, 1 to 1000000; at least so many with --minutes", default: "300"),
        .value("--minutes", "X", "goes on until so many minutes are over, 1 to 10000"),
        .value("--jobs", "N", "how many at once, 1 to 64", default: "2"),
        .flag("--shrink", "makes the first that fails as small as it gets"),
        .flag("--stop", "lives no further history once one failed"),
        .flag("--require-all", "hunts for points that no process ended at, and fails for what is left"),
        .value("--hunts", "N", "histories lived for one such point, 1 to 100000", default: "1000"),
        .flag("--profiles", "names and timers must agree too, which they do not always yet"),
        .flag("--verbose", "a line for each history"),
      ],
      examples: ["chat-simulator run --count 300 --shrink", "chat-simulator run --minutes 3 --require-all"]),
    Command(
      name: "replay", summary: "lives one history again and prints what happens in it",
      operands: ["SEED|FILE"],
      options: [
        .flag("--shrink", "makes it as small as it gets, and prints that as a file"),
        .flag("--trace", "every request and every event"),
        .value("--hunt", "POINT", "of a seed: every process ends once at this point of the register"),
      ],
      examples: ["chat-simulator replay 17", "chat-simulator replay out/failed.story --trace"]),
  ])

do throws(ArgumentError) {
  switch try program.request(CommandLine.arguments.dropFirst()) {
  case .print(let text): print(text)
  case .run("replay", let arguments):
    exit(
      replay(
        arguments.operands[0], shrinks: arguments.has("--shrink"), traces: arguments.has("--trace"),
        hunted: arguments.string("--hunt")))
  case .run(_, let arguments):
    var campaign = Campaign()
    campaign.first = UInt64(try arguments.integer("--from", in: 0...Int.max) ?? 1)
    campaign.count = UInt64(try arguments.integer("--count", in: 1...1_000_000) ?? 300)
    campaign.minutes = try arguments.integer("--minutes", in: 1...10_000)
    campaign.jobs = try arguments.integer("--jobs", in: 1...64) ?? 2
    campaign.shrinks = arguments.has("--shrink")
    campaign.stops = arguments.has("--stop")
    campaign.requiresAll = arguments.has("--require-all")
    campaign.hunts = UInt64(try arguments.integer("--hunts", in: 1...100_000) ?? 1_000)
    campaign.checksProfiles = arguments.has("--profiles")
    campaign.isVerbose = arguments.has("--verbose")
    exit(await campaign.run())
  }
} catch {
  complain("chat-simulator: \(error)")
  exit(2)
}
