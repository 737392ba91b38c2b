import PalbeSFUCore

/// Metrics in Prometheus' text format, version 0.0.4.
///
///     var text = Exposition()
///     text.family("livekit_room_total", .gauge, "rooms") { $0.sample(value: 3) }
struct Exposition {
  enum Kind: String { case counter, gauge, histogram }

  static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  private(set) var text = ""
  private var name = ""

  /// A name with all its samples.
  mutating func family(_ name: String, _ kind: Kind, _ help: String, _ samples: (inout Exposition) -> Void) {
    self.name = name
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    samples(&self)
  }

  /// One sample of the family.
  mutating func sample(_ labels: [(String, String)] = [], value: Double) {
    line(name, labels, Self.number(value))
  }

  mutating func sample(_ labels: [(String, String)] = [], value: some BinaryInteger) {
    line(name, labels, "\(value)")
  }

  /// A histogram's samples: as many as were at most each bound, all of them, their sum and their number.
  mutating func samples(_ histogram: Histogram) {
    var count: UInt64 = 0
    for (bound, more) in zip(histogram.bounds, histogram.counts) {
      count += more
      line(name + "_bucket", [("le", Self.number(bound))], "\(count)")
    }
    count += histogram.counts.last ?? 0
    line(name + "_bucket", [("le", "+Inf")], "\(count)")
    line(name + "_sum", [], Self.number(histogram.sum))
    line(name + "_count", [], "\(count)")
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
