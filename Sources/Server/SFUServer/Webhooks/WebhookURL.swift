import PalbeUnits

/// Where events are posted to: an http or https address.
struct WebhookURL: Equatable, Sendable {
  let text: String

  /// Nil for what is no such address.
  init?(_ text: String) {
    guard WebAddress.isValid(text) else { return nil }
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
