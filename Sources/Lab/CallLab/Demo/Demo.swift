import Foundation
import Glibc
import PalbeEventLoop
import PalbeWire
import Synchronization

/// A real end-to-end encrypted call through our SFU, measured and judged: `palbe-call demo`.
public enum Demo {
  /// Places the call and prints the table.
  ///
  /// - Returns: 0 when every check holds, 1 when one fails (the table names it) or the call could not be placed, 2 when
  ///   it cannot be done as asked (one line on standard error), 128 and the signal's number after SIGINT or SIGTERM;
  ///   SIGHUP counts as SIGTERM. Nothing it started is running when it returns. When something cannot be ended in time,
  ///   it does not return: it ends the process with that status.
  public static func run(_ options: DemoOptions) async -> Int32 {
    SignalWatch.ignoreBrokenPipes()
    Interruption.watch()
    var hangUp = passOnHangUp()
    defer {
      Interruption.unwatch()
      sigaction(SIGHUP, &hangUp, nil)
    }
    let cleanup = Cleanup()
    do {
      let program = try options.checkedSFUPath()
      let file = try options.openReport()
      let folder: String
      do {
        folder = try cleanup.makeFolder()
      } catch {
        file?.discard()
        throw error
      }
      let run = DemoRun(
        options: options, program: program, progress: .onStandardError(), cleanup: cleanup, folder: folder)
      return await perform(run, file)
    } catch {
      complain("palbe-call demo: \(error)")
      return 2
    }
  }

  private static func perform(_ run: DemoRun, _ file: consuming ReportFile?) async -> Int32 {
    let outcome = Outcome()
    let work = Task.detached { outcome.set(await run.measure()) }
    while outcome.value == nil, Interruption.signal == nil {
      try? await Task.sleep(for: .milliseconds(20))
    }
    if let signal = Interruption.signal {
      work.cancel()
      run.progress.finish()
      complain("palbe-call demo: interrupted, hanging up")
      let haveHungUp = await run.cleanup.endAll()
      file?.discard()
      let hasEnded = await outcome.wait(atMost: .seconds(2))
      return leave(128 + signal, isQuiet: haveHungUp && hasEnded)
    }
    let haveHungUp = await run.cleanup.endAll()
    run.progress.finish()
    return leave(conclude(outcome.value ?? DemoMeasurements(), file), isQuiet: haveHungUp)
  }

  /// Returns `status` for the program to end with; ends it at once when something still runs.
  ///
  /// `exit` frees what OpenSSL holds, and a thread that encrypts meanwhile would crash.
  private static func leave(_ status: Int32, isQuiet: Bool) -> Int32 {
    guard !isQuiet else { return status }
    fflush(nil)
    _exit(status)
  }

  /// A closed terminal hangs up as SIGTERM does, unless whoever started us wants SIGHUP ignored (nohup).
  ///
  /// - Returns: what SIGHUP did before.
  private static func passOnHangUp() -> sigaction {
    var before = sigaction()
    sigaction(SIGHUP, nil, &before)
    let ignored = unsafeBitCast(SIG_IGN, to: Int.self)
    guard unsafeBitCast(before.__sigaction_handler.sa_handler, to: Int.self) != ignored else { return before }
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in _ = kill(getpid(), SIGTERM) }
    action.sa_flags = SA_RESTART
    sigaction(SIGHUP, &action, nil)
    return before
  }

  final class Outcome: Sendable {
    private let measured = Mutex<DemoMeasurements?>(nil)
    var value: DemoMeasurements? { measured.withLock { $0 } }
    func set(_ value: DemoMeasurements) { measured.withLock { $0 = value } }

    /// Waits for the value; whether there is one by then.
    func wait(atMost patience: Duration) async -> Bool {
      let deadline = ContinuousClock.now + patience
      while value == nil, ContinuousClock.now < deadline {
        try? await Task.sleep(for: .milliseconds(5))
      }
      return value != nil
    }
  }

  private static func conclude(_ measured: DemoMeasurements, _ file: consuming ReportFile?) -> Int32 {
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
    do {
      try file?.write(try report.json())
    } catch {
      complain("palbe-call demo: the report cannot be written: \(error)")
      return 1
    }
    return report.pass ? 0 : 1
  }

  private static func complain(_ line: String) {
    try? FileHandle.standardError.write(contentsOf: Data((printable(line) + "\n").utf8))
  }
}
