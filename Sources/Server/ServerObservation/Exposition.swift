/// Metrics in Prometheus' text format, version 0.0.4.
///
///     var text = Exposition()
///     text.family("livekit_room_total", .gauge, "rooms") { $0.sample(value: 3) }
public struct Exposition: Sendable {
  /// What a family's samples are.
  public enum Kind: String, Sendable { case counter, gauge, histogram }

  /// For the answer's header.
  public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  /// All of it.
  public private(set) var text = ""
  private var name = ""

  /// Nothing yet.
  public init() {}

  /// A name with all its samples.
  public mutating func family(
    _ name: String, _ kind: Kind, _ help: String, _ samples: (inout Exposition) -> Void
  ) {
    self.name = name
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    samples(&self)
  }

  /// One sample of the family.
  public mutating func sample(_ labels: [(String, String)] = [], value: Double) {
    line(name, labels, Self.number(value))
  }

  /// One sample of the family.
  public mutating func sample(_ labels: [(String, String)] = [], value: some BinaryInteger) {
    line(name, labels, "\(value)")
  }

  /// A histogram's samples: as many as were at most each bound, all of them, their sum and their number.
  ///
  /// - Parameter counts: not summed up, one more than there are bounds: the last for what is above them all.
  public mutating func samples(
    bounds: [Double], counts: [UInt64], sum: Double, _ labels: [(String, String)] = []
  ) {
    var count: UInt64 = 0
    for (bound, more) in zip(bounds, counts) {
      count += more
      line(name + "_bucket", labels + [("le", Self.number(bound))], "\(count)")
    }
    count += counts.last ?? 0
    line(name + "_bucket", labels + [("le", "+Inf")], "\(count)")
    line(name + "_sum", labels, Self.number(sum))
    line(name + "_count", labels, "\(count)")
  }

  private mutating func line(_ name: String, _ labels: [(String, String)], _ value: String) {
    text += name
    if !labels.isEmpty {
      text += "{" + labels.map { "\($0)=\"\(Self.escaped($1))\"" }.joined(separator: ",") + "}"
    }
    text += " \(value)\n"
  }

  private static func escaped(_ value: String) -> String {
    var result = ""
    for character in value.unicodeScalars {
      switch character {
      case "\\": result += "\\\\"
      case "\"": result += "\\\""
      case "\n": result += "\\n"
      default: result.unicodeScalars.append(character)
      }
    }
    return result
  }

  private static func number(_ value: Double) -> String {
    value == value.rounded() && abs(value) < 1e15 ? "\(Int64(value))" : "\(value)"
  }
}
