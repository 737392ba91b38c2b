/// Where events are posted to: an http or https address.
struct WebhookURL: Equatable, Sendable {
  let text: String

  /// Nil for what is no such address.
  init?(_ text: String) {
    let lower = text.lowercased()
    guard let scheme = ["http://", "https://"].first(where: lower.hasPrefix),
      text.utf8.count <= 2_048, text.utf8.allSatisfy({ $0 > 32 && $0 < 127 }),
      let first = text.dropFirst(scheme.count).first, first != "/", first != "?", first != "#"
    else { return nil }
    self.text = text
  }

  /// Scheme, host and port, without what may be a secret: for the log.
  var label: String {
    guard let gap = text.firstRange(of: "://") else { return "" }
    let authority = text[gap.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
    return String(text[..<gap.upperBound] + host)
  }
}
