import Glibc
import PalbeCommandLine
import PalbeUnits

let json = "--json"
let program = Program(
  name: "palbe-bench", version: Release.version,
  summary: "what this machine's media path and group encryption cost, beside what they could cost at best",
  commands: [
    Command(
      name: "frames", summary: "seals and opens frames of 100 B to 50 kB in SFrame suites 4 and 5",
      options: [
        .flag(
          json,
          "an array of objects {suite, bytes, operation, ns, limit_ns, ratio, mallocs} instead of a table"),
        .value("--slices", "N", "slices of 1 ms to measure, 1 to 10000", default: "200"),
      ],
      examples: [
        "palbe-bench frames", "palbe-bench frames --json > frames.json", "palbe-bench frames --slices 1000",
      ]),
    Command(
      name: "mls",
      summary: "groups of 2 to 10,000 members: create, add, join, commit, process, messages, exporter",
      options: [
        .flag(
          json,
          "an array of objects {operation, members, tree, us, floor_us, ratio, bytes, resident_bytes} "
            + "instead of a table"),
        .value("--members", "N,N", "sizes of groups, each 2 to 20000", default: "2,10,100,1000,10000"),
        .value("--slices", "N", "slices of 2 ms or one operation to measure, 1 to 10000", default: "60"),
      ],
      examples: [
        "palbe-bench mls", "palbe-bench mls --json > mls.json",
        "palbe-bench mls --members 2,1000 --slices 10",
      ]),
    Command(
      name: "sfu",
      summary: "the SFU's worker on one processor beside a bare relay: real sockets, DTLS and SRTP",
      options: [
        .flag(
          json,
          "an array of objects {scenario, subscribers, send, pps_per_core, limit_pps_per_core, ratio, "
            + "latency_ms_p50, latency_ms_p99, mallocs_per_packet, bytes_per_subscriber} instead of a table"),
        .value("--slices", "N", "slices of 0.5 s of each side, 1 to 100", default: "5"),
        .value("--only", "TEXT", "scenarios whose name has it, such as 'video 1:50'"),
        .value("--join", "N", "instead, times from the join of each of N subscribers to its first packet"),
        .flag("--count", "instead, forwards to 50 without threads, for scripts/sfu-instructions to count"),
      ],
      examples: [
        "palbe-bench sfu", "palbe-bench sfu --json > sfu.json", "palbe-bench sfu --only rooms",
        "palbe-bench sfu --join 200",
      ]),
    Command(
      name: "server",
      summary: "the delivery server on its disk beside a bare SQLite loop: fan-out, queues, idle sockets",
      options: [
        .flag(json, "an array of objects {scenario, metric, value, unit, floor, ratio} instead of a table"),
        .value("--slices", "N", "slices of each side, 1 to 100", default: "5"),
        .value("--sockets", "N", "idle sockets, 100 to 10000", default: "10000"),
        .value("--only", "TEXT", "scenarios whose name has it, such as 'fan-out' or 'idle sockets'"),
      ],
      examples: [
        "palbe-bench server", "palbe-bench server --json > server.json", "palbe-bench server --only drain",
      ]),
    Command(
      name: "chat",
      summary: "chats over the SDK and a real palbe-server beside the parts that cannot be left out",
      options: [
        .flag(json, "an array of objects {scenario, metric, value, unit, floor, ratio} instead of a table"),
        .flag("--short", "the short form, which counts and measures little (30 s)"),
        .value(
          "--only", "TEXT",
          "scenarios whose name has it: two devices, fan-out, group of 400, flood, cold start"),
      ],
      examples: [
        "palbe-bench chat", "palbe-bench chat --json > chat.json", "palbe-bench chat --only 'two devices'",
      ]),
  ])

/// Writes to standard error.
func complain(_ text: String) {
  var bytes = Array(text.utf8)
  while !bytes.isEmpty {
    let count = write(STDERR_FILENO, bytes, bytes.count)
    guard count > 0 else { return }
    bytes.removeFirst(count)
  }
}

/// Group sizes from text such as `2,1000`.
func sizes(_ text: String) throws(ArgumentError) -> [Int] {
  var sizes: [Int] = []
  for part in text.split(separator: ",", omittingEmptySubsequences: false) {
    guard let size = Int(part), (2...20_000).contains(size) else {
      throw ArgumentError(
        "option '--members' is '\(text)'; expected whole numbers from 2 to 20000 with commas")
    }
    sizes.append(size)
  }
  return sizes
}

// The server of idle sockets: this program, started by itself.
if CommandLine.arguments.count == 3, CommandLine.arguments[1] == IdleHost.command {
  IdleHost.run(CommandLine.arguments[2])
}

// The device of a flood: this program too.
if CommandLine.arguments.count == 4, CommandLine.arguments[1] == ChatHost.command {
  onMainActor { await ChatHost.run(CommandLine.arguments[2], CommandLine.arguments[3]) }
}

do throws(ArgumentError) {
  switch try program.request(CommandLine.arguments.dropFirst()) {
  case .print(let text): print(text)
  case .run(let command, let arguments):
    let slices = try arguments.integer("--slices", in: 1...10_000) ?? 1
    let joinCount = try arguments.integer("--join", in: 1...1_000)
    let sockets = try arguments.integer("--sockets", in: 100...10_000) ?? 10_000
    let showsProgress = !arguments.has(json) && isatty(STDERR_FILENO) == 1
    func progress(_ text: String) {
      if showsProgress { complain("\r\(text)\u{1b}[K") }
    }
    if command == "sfu" {
      do {
        if arguments.has("--count") {
          let counts = try CountBench.run(subscribers: 50, rounds: 10)
          print("packets: \(counts.sfu) of the SFU, \(counts.relay) of the relay")
          exit(0)
        }
        if let joinCount {
          let times = try SFUBench.join(joinCount, progress: progress)
          progress("")
          print(arguments.has(json) ? JoinBench.json(times) : JoinBench.text(times))
          exit(0)
        }
        let rows = try SFUBench.run(
          slices: min(100, slices), only: arguments.string("--only"), progress: progress)
        progress("")
        print(arguments.has(json) ? SFUReport.json(rows) : SFUReport.text(rows))
      } catch {
        complain("palbe-bench: \(error)\n")
        exit(1)
      }
    } else if command == "server" {
      do {
        var bench = ServerBench(
          slices: min(100, slices), sockets: sockets, only: arguments.string("--only"), progress: progress)
        try bench.run()
        progress("")
        print(arguments.has(json) ? ServerReport.json(bench.rows) : ServerReport.text(bench.rows))
      } catch {
        complain("palbe-bench: \(error)\n")
        exit(1)
      }
    } else if command == "chat" {
      let (isShort, only, asJSON) = (
        arguments.has("--short"), arguments.string("--only"), arguments.has(json)
      )
      onMainActor {
        do {
          var bench = ChatBench(
            isShort: isShort, only: only, progress: { if showsProgress { complain("\r\($0)\u{1b}[K") } })
          try await bench.run()
          if showsProgress { complain("\r\u{1b}[K") }
          print(asJSON ? ChatReport.json(bench.rows) : ChatReport.text(bench.rows))
          exit(0)
        } catch {
          complain("palbe-bench: \(error)\n")
          exit(1)
        }
      }
    } else if command == "frames" {
      let rows = FramesBench.run(slices: slices, progress: progress)
      progress("")
      print(arguments.has(json) ? FramesReport.json(rows) : FramesReport.text(rows))
    } else {
      let members = try sizes(try arguments.required("--members"))
      var bench = MLSBench(slicing: Slicing(slices: slices), progress: progress)
      bench.run(members)
      progress("")
      print(arguments.has(json) ? MLSReport.json(bench.rows) : MLSReport.text(bench.rows, bench.notes))
    }
  }
} catch {
  complain("palbe-bench: \(error)\n")
  exit(2)
}
