// Clients at a real delivery server that is killed at random; what they were told must hold.
import Glibc
import PalbeCommandLine
import PalbeServerCampaign
import PalbeUnits

let program = Program(
  name: "server-campaign", version: Release.version,
  summary: "clients at a real palbe-server that is killed at random; nothing acknowledged may be lost",
  commands: [
    Command(
      name: "run", summary: "exits 1 when something that a client was told does not hold",
      options: [
        .value("--operations", "N", "operations of all clients, 1 to 100000000", default: "100000"),
        .value("--clients", "N", "devices, 2 to 200", default: "50"),
        .value("--kills", "N", "how often the server is killed, 0 to 10000", default: "40"),
        .value("--groups", "N", "groups, 1 to 1000", default: "15"),
        .value("--seed", "N", "draws what is done", default: "1"),
      ],
      examples: ["server-campaign run", "server-campaign run --operations 5000 --clients 10 --kills 5"])
  ])

func complain(_ text: String) { put(text, to: STDERR_FILENO) }

do {
  switch try program.request(CommandLine.arguments.dropFirst()) {
  case .print(let text): print(text)
  case .run(_, let arguments):
    var settings = CampaignSettings()
    settings.operationCount = try arguments.integer("--operations", in: 1...100_000_000) ?? 100_000
    settings.clientCount = try arguments.integer("--clients", in: 2...200) ?? 50
    settings.killCount = try arguments.integer("--kills", in: 0...10_000) ?? 40
    settings.groupCount = try arguments.integer("--groups", in: 1...1_000) ?? 15
    settings.seed = UInt64(try arguments.integer("--seed", in: 0...Int.max) ?? 1)
    let report = try Campaign(settings).run()
    print("operations    \(report.operations)")
    print("messages      \(report.accepted) accepted")
    print("commits       \(report.commits) accepted; \(report.stale) requests came too late")
    print("kills         \(report.kills), \(report.broken) requests broken by them")
    for complaint in report.complaints { complain("server-campaign: \(complaint)") }
    exit(report.complaints.isEmpty ? 0 : 1)
  }
} catch let error as ArgumentError {
  complain("server-campaign: \(error)")
  exit(2)
} catch {
  complain("server-campaign: \(error)")
  exit(1)
}
