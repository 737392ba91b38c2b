/// Which bytes of something a request is about (RFC 9110 §14).
public enum HTTPRange: Hashable, Sendable {
  /// All of it: no range was asked for, or one that need not be understood.
  case whole
  /// These.
  case part(Range<Int64>)
  /// None that are there: 416.
  case unsatisfiable

  /// Reads a `Range` header for something of `count` bytes. Several ranges, and other units than bytes, count as none, as a
  /// server may hold it.
  public init(_ header: String?, count: Int64) {
    self = .whole
    guard let header, let equals = header.firstIndex(of: "="),
      header[..<equals].lowercased().filter({ $0 != " " }) == "bytes"
    else { return }
    let spec = header[header.index(after: equals)...].filter { $0 != " " && $0 != "\t" }
    let parts = spec.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, !spec.contains(",") else { return }
    if parts[0].isEmpty {
      guard let suffix = Self.number(parts[1]) else { return }
      self = suffix == 0 || count == 0 ? .unsatisfiable : .part(max(0, count - suffix)..<count)
      return
    }
    guard let first = Self.number(parts[0]) else { return }
    var end = count
    if !parts[1].isEmpty {
      guard let last = Self.number(parts[1]), last >= first else { return }
      end = min(count, last + 1)
    }
    self = first < count ? .part(first..<end) : .unsatisfiable
  }

  /// Digits only, at most 18 of them.
  static func number(_ text: some StringProtocol) -> Int64? {
    guard (1...18).contains(text.utf8.count), text.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }) else {
      return nil
    }
    return Int64(text)
  }
}

/// Where a piece of something larger belongs: a `Content-Range` header, "bytes 0-99/1234" (RFC 9110 §14.4).
public struct HTTPContentRange: Hashable, Sendable {
  /// The bytes that come, at least one.
  public var range: Range<Int64>
  /// How many there are in all; nil for "*".
  public var count: Int64?

  /// Nil where it is malformed, or says that nothing comes.
  public init?(_ header: String) {
    let text = header.lowercased()
    guard text.hasPrefix("bytes ") else { return nil }
    let parts = text.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
    let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, ends.count == 2, let first = HTTPRange.number(ends[0]),
      let last = HTTPRange.number(ends[1]), last >= first
    else { return nil }
    range = first..<last + 1
    guard parts[1] != "*" else { return }
    guard let count = HTTPRange.number(parts[1]), count > last else { return nil }
    self.count = count
  }
}
