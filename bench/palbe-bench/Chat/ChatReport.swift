import Foundation

/// Runs asynchronous work on the main actor, whose thread stays this one, until the work ends the process.
func onMainActor(_ body: @escaping @MainActor @Sendable () async -> Void) -> Never {
  Task { @MainActor in await body() }
  while true { RunLoop.main.run(until: .distantFuture) }
}

/// The rows as JSON or as a table, to a tenth of their unit.
enum ChatReport {
  static func json(_ rows: [ServerRow]) -> String {
    let objects = rows.map { row in
      "{\"scenario\":\"\(row.scenario)\",\"metric\":\"\(row.metric)\",\"value\":\(fixed(row.value, 1)),"
        + "\"unit\":\"\(row.unit)\",\"floor\":\(fixed(row.floor, 1)),\"ratio\":\(fixed(min(row.ratio, 9_999), 3))}"
    }
    return "[\n  " + objects.joined(separator: ",\n  ") + "\n]"
  }

  static func text(_ rows: [ServerRow]) -> String {
    table(
      ["scenario", "metric", "ours", "unit", "floor", "ratio"],
      rows.map {
        [
          $0.scenario, $0.metric, fixed($0.value, 1), $0.unit, fixed($0.floor, 1),
          fixed(min($0.ratio, 9_999), 2),
        ]
      }, left: [0, 1, 3])
  }
}
