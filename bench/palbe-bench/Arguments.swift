/// The command line.
enum Arguments {
  case help
  case version
  case frames(json: Bool, slices: Int)

  struct UsageError: Error { let message: String }

  static let versionText = "0.1.0"

  static let helpText = """
    usage: palbe-bench frames [--json] [--slices N]

    Measures what this machine's frame encryption costs, beside what it could cost at best.

      frames        seal and open a frame of 100 B, 1 kB, 10 kB and 50 kB, in SFrame suites 4 and 5
        --json      an array of flat objects instead of the table:
                    {"suite", "bytes", "operation", "ns", "limit_ns", "ratio", "mallocs"}
        --slices N  slices of 1 ms to measure, 1 to 10000; 200 unless told
      --help        this text
      --version     the version

    Examples:
      palbe-bench frames
      palbe-bench frames --json > frames.json
      palbe-bench frames --slices 1000

    Build it with: swift build -c release --product palbe-bench
    """

  static func parse(_ arguments: [String]) -> Result<Arguments, UsageError> {
    if arguments.contains("--help") || arguments.contains("-h") { return .success(.help) }
    if arguments == ["--version"] { return .success(.version) }
    guard let command = arguments.first else { return fail("no command; try palbe-bench --help") }
    guard command == "frames" else { return fail("unknown command '\(command)'; try palbe-bench --help") }
    var json = false
    var slices = 200
    var rest = arguments.dropFirst()
    while let option = rest.popFirst() {
      switch option {
      case "--json": json = true
      case "--slices":
        guard let text = rest.popFirst(), let count = Int(text), (1...10_000).contains(count) else {
          return fail("--slices needs a number from 1 to 10000")
        }
        slices = count
      default: return fail("unknown option '\(option)'; try palbe-bench --help")
      }
    }
    return .success(.frames(json: json, slices: slices))
  }

  private static func fail(_ message: String) -> Result<Arguments, UsageError> {
    .failure(UsageError(message: message))
  }
}
