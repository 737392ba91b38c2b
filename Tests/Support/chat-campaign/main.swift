// Clients over the SDK and a real server, killed at random; in the end everybody has the same.
import Dispatch
import Glibc
import PalbeChatCampaign
import PalbeCommandLine
import PalbeUnits

if CommandLine.arguments.count > 2, CommandLine.arguments[1] == CampaignClient.command {
  let words = Array(CommandLine.arguments.dropFirst(2))
  Task { exit(await CampaignClient.run(words)) }
  dispatchMain()
}

let program = Program(
  name: "chat-campaign", version: Release.version,
  summary:
    "processes over the SDK and a real palbe-server that are killed at random; nothing may be lost or doubled",
  commands: [
    Command(
      name: "run", summary: "exits 1 when a transcript is not what it must be",
      options: [
        .value("--minutes", "N", "minutes of traffic with kills, 1 to 1000"),
        .value("--seconds", "N", "the same in seconds, 1 to 86400", default: "30"),
        .value("--clients", "N", "processes, 2 to 20", default: "6"),
        .value("--seed", "N", "draws what is done and when; by default another one each time"),
      ],
      examples: ["chat-campaign run --minutes 10", "chat-campaign run --seconds 30 --seed 7"])
  ])

do {
  switch try program.request(CommandLine.arguments.dropFirst()) {
  case .print(let text): print(text)
  case .run(_, let arguments):
    var settings = ChatCampaignSettings()
    settings.seconds = try arguments.integer("--seconds", in: 1...86_400) ?? 30
    if let minutes = try arguments.integer("--minutes", in: 1...1_000) { settings.seconds = minutes * 60 }
    settings.clientCount = try arguments.integer("--clients", in: 2...20) ?? 6
    // A chat keeps 1,000 messages on a device: long runs go slower.
    settings.actionInterval = max(0.1, Double(settings.seconds) / 200)
    settings.seed =
      try arguments.integer("--seed", in: 0...Int.max).map { UInt64($0) } ?? UInt64.random(in: 0...999_999)
    put("seed          \(settings.seed)\n", to: STDOUT_FILENO)
    let report = try ChatCampaign(settings) { put("\($0)\n", to: STDERR_FILENO) }.run()
    print("messages      \(report.messages), \(report.actions) actions in the last lives")
    print("kills         \(report.clientKills) of clients, \(report.serverKills) of the server")
    print("at rest after \(Int(report.settling)) s")
    for complaint in report.complaints { put("chat-campaign: \(complaint)\n", to: STDERR_FILENO) }
    exit(report.complaints.isEmpty ? 0 : 1)
  }
} catch let error as ArgumentError {
  put("chat-campaign: \(error)\n", to: STDERR_FILENO)
  exit(2)
} catch {
  put("chat-campaign: \(error)\n", to: STDERR_FILENO)
  exit(1)
}
