import Foundation

extension ServerFailure {
  /// The longest body of an error that is read, in bytes.
  package static let bodyLimit = 65_536

  /// The refusal that an HTTP answer carries. Everything in it comes from a peer: what is missing, too long or of
  /// another type is replaced by what the status says.
  /// - Parameter headers: names in lower case.
  package init(status: Int, headers: [String: String], body: [UInt8]) {
    let wire = body.count <= Self.bodyLimit ? Self.members(of: body) : [:]
    let code = (wire["code"] as? String).flatMap(Self.code) ?? Self.code(ofStatus: status)
    let facts = FailureFacts.facts(of: code, status: status)
    self.init(
      code: code,
      // The body may be older than what a proxy made of it: the status line counts.
      status: status,
      message: (wire["message"] as? String).map { Self.line($0, limit: 1_024) } ?? facts.message,
      requestId: (wire["request_id"] as? String ?? headers["request-id"]).map { Self.line($0, limit: 128) },
      retryAfter: Self.wait(wire["retry_after"] as? Double ?? headers["retry-after"].flatMap(Double.init)),
      details: Self.text(of: wire["details"]))
  }

  private static func members(of body: [UInt8]) -> [String: Any] {
    (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:]
  }

  /// An object as text, its keys sorted so that equal objects are equal texts; anything else is left out.
  private static func text(of value: Any?) -> [UInt8] {
    guard let members = value as? [String: Any],
      let text = try? JSONSerialization.data(withJSONObject: members, options: .sortedKeys)
    else { return [] }
    return [UInt8](text)
  }

  private static func code(_ text: String) -> FailureCode? {
    guard (1...64).contains(text.utf8.count),
      text.utf8.allSatisfy({ (97...122).contains($0) || (48...57).contains($0) || $0 == UInt8(ascii: "_") })
    else { return nil }
    return FailureCode(rawValue: text)
  }

  /// For an answer that is not the server's own, such as a proxy's.
  private static func code(ofStatus status: Int) -> FailureCode {
    switch status {
    case 429: .rateLimited
    case 502, 503, 504: .unavailable
    default: FailureCode(rawValue: "http_\(status)")
    }
  }

  private static func wait(_ seconds: Double?) -> Duration? {
    guard let seconds, seconds >= 0 else { return nil }
    return .milliseconds(Int64(min(seconds, 86_400) * 1_000))
  }

  /// One line of at most `limit` characters, without anything that moves a terminal's cursor.
  private static func line(_ text: String, limit: Int) -> String {
    let scalars = text.unicodeScalars.prefix(limit).map { scalar -> Unicode.Scalar in
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator: " "
      default: scalar
      }
    }
    var line = String.UnicodeScalarView()
    line.append(contentsOf: scalars)
    return String(line)
  }
}
