import Foundation
import PalbeEventLoop
import Synchronization

/// A real end-to-end encrypted call through our SFU, measured and judged: `palbe-call demo`.
public enum Demo {
  /// Places the call and prints the table.
  ///
  /// - Returns: 0 when every check holds, 1 when one fails (the table names it) or the call could not be placed, 2 when
  ///   it cannot be done as asked (one line on standard error), 128 and the signal's number after SIGINT or SIGTERM.
  ///   Nothing it started is running when it returns.
  public static func run(_ options: DemoOptions) async -> Int32 {
    let program: String
    do {
      program = try options.checkedSFUPath()
    } catch {
      complain("palbe-call demo: \(error)")
      return 2
    }
    SignalWatch.ignoreBrokenPipes()
    Interruption.watch()
    defer { Interruption.unwatch() }
    let progress = Progress.onStandardError()
    let cleanup = Cleanup()
    let run = DemoRun(options: options, program: program, progress: progress, cleanup: cleanup)
    let outcome = Outcome()
    let work = Task.detached { outcome.set(await run.measure()) }
    while outcome.value == nil, Interruption.signal == nil {
      try? await Task.sleep(for: .milliseconds(20))
    }
    if let signal = Interruption.signal {
      work.cancel()
      progress.finish()
      complain("palbe-call demo: interrupted, hanging up")
      await cleanup.endAll()
      return 128 + signal
    }
    await cleanup.endAll()
    progress.finish()
    return conclude(outcome.value ?? DemoMeasurements(), options)
  }

  private final class Outcome: Sendable {
    private let measured = Mutex<DemoMeasurements?>(nil)
    var value: DemoMeasurements? { measured.withLock { $0 } }
    func set(_ value: DemoMeasurements) { measured.withLock { $0 = value } }
  }

  private static func conclude(_ measured: DemoMeasurements, _ options: DemoOptions) -> Int32 {
    let checks = DemoChecks.evaluate(measured)
    if measured.directions.isEmpty, let trouble = measured.troubles.first {
      // No call, no figures.
      complain("palbe-call demo: FAILED, the run did not go to its end: \(trouble)")
    } else {
      let lines = DemoTable.lines(measured, checks: checks)
      // Nobody may read it: that ends nothing.
      try? FileHandle.standardOutput.write(
        contentsOf: Data((lines.joined(separator: "\n") + "\n").utf8))
    }
    let report = DemoReport(measured, checks: checks)
    if let path = options.reportPath {
      do {
        try report.json().write(to: URL(fileURLWithPath: path))
      } catch {
        complain("palbe-call demo: the report cannot be written: \(path)")
        return 1
      }
    }
    return report.pass ? 0 : 1
  }

  private static func complain(_ line: String) {
    try? FileHandle.standardError.write(contentsOf: Data("\(line)\n".utf8))
  }
}
