/// A place where a process can end: before or after a kind of transaction, named by the records that it touches.
package struct CrashPoint: Hashable, Sendable {
  package let kind: String
  package let moment: CrashingStorage.Moment

  /// Kinds of transactions that an engine makes. A run that makes another one says so.
  package static let kinds = drawnKinds + ["device+group+operation+outbox+transcript"]

  /// What histories draw from: their number and order are part of what a seed lives. The others are hunted alone.
  private static let drawnKinds: [String] = [
    "device",
    "device+group",
    "device+group+operation",
    "device+group+operation+transcript",
    "device+group+transcript",
    "group",
    "group+operation",
    "group+operation+outbox",
    "group+operation+outbox+transcript",
    "group+operation+secrets",
    "group+operation+secrets+transcript",
    "group+operation+transcript",
    "group+outbox",
    "group+outbox+transcript",
    "group+secrets",
    "group+secrets+transcript",
    "group+transcript",
    "head",
    "device+group+outbox+transcript",
    "keys",
    "operation",
    "operation+outbox+transcript",
    "operation+transcript",
    "outbox",
    "outbox+transcript",
    "progress",
    "secrets",
    "transcript",
  ]

  /// The register: every one must be hit in a long run.
  package static let all: [CrashPoint] = points(kinds)
  /// Those that histories draw from.
  static let drawn: [CrashPoint] = points(drawnKinds)

  private static func points(_ kinds: [String]) -> [CrashPoint] {
    kinds.flatMap { kind in CrashingStorage.Moment.allCases.map { CrashPoint(kind: kind, moment: $0) } }
  }

  /// As `CrashRegistry.hit` has it.
  package var name: String { "\(kind) \(moment.rawValue)" }

  /// A point of the register by its name; nil for none.
  package init?(name: String) {
    guard let point = Self.all.first(where: { $0.name == name }) else { return nil }
    self = point
  }

  init(kind: String, moment: CrashingStorage.Moment) { (self.kind, self.moment) = (kind, moment) }
}
