import Glibc

/// Writes to standard error.
func complain(_ text: String) {
  var bytes = Array(text.utf8)
  while !bytes.isEmpty {
    let count = write(2, bytes, bytes.count)
    guard count > 0 else { return }
    bytes.removeFirst(count)
  }
}

switch Arguments.parse(Array(CommandLine.arguments.dropFirst())) {
case .success(.help):
  print(Arguments.helpText)
case .success(.version):
  print("palbe-bench \(Arguments.versionText)")
case .success(.frames(let json, let slices)):
  let showsProgress = !json && isatty(2) == 1
  let rows = FramesBench.run(slices: slices) { progress in
    if showsProgress { complain("\r\(progress)\u{1b}[K") }
  }
  if showsProgress { complain("\r\u{1b}[K") }
  print(json ? FramesReport.json(rows) : FramesReport.table(rows))
case .failure(let error):
  complain("palbe-bench: \(error.message)\n")
  exit(2)
}
