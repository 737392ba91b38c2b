import Glibc
import PalbeCommandLine
import PalbeUnits

let program = Program(
  name: "palbe-bench", version: Release.version,
  summary: "what this machine's media path costs, beside what it could cost at best",
  commands: [
    Command(
      name: "frames", summary: "seals and opens frames of 100 B to 50 kB in SFrame suites 4 and 5",
      options: [
        .flag(
          "--json",
          "an array of objects {suite, bytes, operation, ns, limit_ns, ratio, mallocs} instead of a table"),
        .value("--slices", "N", "slices of 1 ms to measure, 1 to 10000", default: "200"),
      ],
      examples: [
        "palbe-bench frames", "palbe-bench frames --json > frames.json", "palbe-bench frames --slices 1000",
      ])
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

do throws(ArgumentError) {
  switch try program.request(CommandLine.arguments.dropFirst()) {
  case .print(let text): print(text)
  case .run(_, let arguments):
    let slices = try arguments.integer("--slices", in: 1...10_000) ?? 200
    let showsProgress = !arguments.has("--json") && isatty(STDERR_FILENO) == 1
    let rows = FramesBench.run(slices: slices) { progress in
      if showsProgress { complain("\r\(progress)\u{1b}[K") }
    }
    if showsProgress { complain("\r\u{1b}[K") }
    print(arguments.has("--json") ? FramesReport.json(rows) : FramesReport.table(rows))
  }
} catch {
  complain("palbe-bench: \(error)\n")
  exit(2)
}
