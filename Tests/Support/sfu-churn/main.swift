// A crowd joins and leaves a real SFU at random; nothing may be left behind.
import Glibc
import PalbeCommandLine
import PalbeSFUChurn
import PalbeUnits

let program = Program(
  name: "sfu-churn", version: Release.version,
  summary: "participants join and leave a real SFU at random; nothing may be left behind",
  commands: [
    Command(
      name: "run", summary: "exits 1 when memory, descriptors, rooms or participants are left behind",
      options: [
        .value("--seconds", "N", "length of the run that is measured, 1 to 86400", default: "120"),
        .value(
          "--warm-up", "N", "length of a round before it, in seconds; rounds go on until memory settles",
          default: "20"),
        .value("--participants", "N", "places in the crowd, 1 to 2000", default: "200"),
        .value("--rooms", "N", "rooms they choose from, 1 to 1000", default: "20"),
        .value("--workers", "N", "threads that forward media, 1 to 64", default: "2"),
        .value("--seed", "N", "draws who comes and goes when", default: "1"),
      ],
      examples: ["sfu-churn run", "sfu-churn run --seconds 20 --participants 50"])
  ])

func complain(_ text: String) { put(text, to: STDERR_FILENO) }

func percent(_ part: Double) -> String { "\((part * 1_000).rounded() / 10) %" }

do {
  switch try program.request(CommandLine.arguments.dropFirst()) {
  case .print(let text): print(text)
  case .run(_, let arguments):
    var settings = ChurnSettings()
    settings.seconds = try arguments.integer("--seconds", in: 1...86_400) ?? settings.seconds
    settings.warmUpSeconds = try arguments.integer("--warm-up", in: 1...86_400) ?? settings.warmUpSeconds
    settings.participants = try arguments.integer("--participants", in: 1...2_000) ?? settings.participants
    settings.rooms = try arguments.integer("--rooms", in: 1...1_000) ?? settings.rooms
    settings.workers = try arguments.integer("--workers", in: 1...64) ?? settings.workers
    settings.seed = UInt64(try arguments.integer("--seed", in: 0...Int.max) ?? 1)
    let report = try await Churn(settings).run()
    print("warm-up             \(report.warmUpRounds) rounds")
    print("joins               \(report.joins), \(report.connections) connected")
    print("at once             at most \(report.peak)")
    print("time to connect     \((report.connectMilliseconds * 10).rounded() / 10) ms, median")
    print("frames heard        \(report.packets)")
    print("longest turn        \(report.longestTurnMilliseconds.rounded()) ms for all clients")
    print("live memory         \(report.before.liveBytes) B, then \(percent(report.growth(\.liveBytes)))")
    let resident = percent(report.growth(\.residentBytes))
    print("resident memory     \(report.before.residentBytes) B, then \(resident)")
    print("descriptors         \(report.before.descriptors), then \(report.after.descriptors)")
    print("left behind         \(report.stuckParticipants) participants, \(report.stuckRooms) rooms")
    for complaint in report.complaints { complain("sfu-churn: \(complaint)") }
    exit(report.complaints.isEmpty ? 0 : 1)
  }
} catch let error as ArgumentError {
  complain("sfu-churn: \(error)")
  exit(2)
} catch {
  complain("sfu-churn: \(error)")
  exit(1)
}
