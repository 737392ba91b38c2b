/// Addresses of the web, as text in a configuration.
public enum WebAddress {
  /// Whether it begins with http or https and a host, and is printable ASCII alone: such an address ends no line and no header wherever
  /// it is put.
  public static func isValid(_ text: String) -> Bool {
    let lower = text.lowercased()
    guard let scheme = ["http://", "https://"].first(where: lower.hasPrefix),
      text.utf8.count <= 2_048, text.utf8.allSatisfy({ $0 > 32 && $0 < 127 }),
      let first = text.dropFirst(scheme.count).first
    else { return false }
    return first != "/" && first != "?" && first != "#"
  }
}
