/// What a parse may take in.
public struct SDPLimits: Sendable {
  /// The text's length in bytes.
  public var bytes = 256 * 1_024
  /// Media sections.
  public var sections = 256

  /// The defaults carry a room of a hundred tracks.
  public init() {}
}

extension SessionDescription {
  /// Parses a description; lines end with CRLF or LF, and empty lines may follow the last one.
  ///
  /// Throws where the text is not SDP. Whether it is enough for a call, `validate` tells.
  public init(parsing text: String, limits: SDPLimits = SDPLimits()) throws(SDPError) {
    let length = text.utf8.count
    guard length <= limits.bytes else { throw .tooLong(length: length, limit: limits.bytes) }

    var origin: SDPOrigin?
    var name: String?
    var session = SDPAttributes()
    var sections: [MediaSection] = []
    var current: MediaSection?
    var number = 0
    var hasVersion = false
    var isPastEnd = false

    for line in text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
      number += 1
      var line = line
      if line.last == UInt8(ascii: "\r") { line = line.dropLast() }
      if line.isEmpty {
        isPastEnd = true
        continue
      }
      guard !isPastEnd, let (type, value) = Self.split(line) else { throw .malformedLine(number) }
      if !hasVersion {
        guard type == UInt8(ascii: "v"), value == "0" else { throw .malformedLine(number) }
        hasVersion = true
        continue
      }
      switch type {
      case UInt8(ascii: "v"): throw .malformedLine(number)
      case UInt8(ascii: "o"):
        guard origin == nil, current == nil, let parsed = SDPOrigin(parsing: value) else {
          throw .malformedLine(number)
        }
        origin = parsed
      case UInt8(ascii: "s"):
        guard name == nil, current == nil else { throw .malformedLine(number) }
        name = value
      case UInt8(ascii: "m"):
        guard let section = MediaSection(parsing: value) else { throw .malformedLine(number) }
        if let current { sections.append(current) }
        guard sections.count < limits.sections else { throw .tooManySections(limit: limits.sections) }
        current = section
      case UInt8(ascii: "c"): current?.connection = value
      case UInt8(ascii: "a"):
        guard let attribute = SDPAttribute(parsing: value) else { throw .malformedLine(number) }
        if current == nil { session.all.append(attribute) } else { current?.attributes.all.append(attribute) }
      default: break
      }
    }
    if let current { sections.append(current) }
    guard hasVersion else { throw .missingLine("v") }
    guard let origin else { throw .missingLine("o") }
    guard let name else { throw .missingLine("s") }
    self.init(origin: origin)
    self.name = name
    attributes = session
    media = sections
  }

  /// The type letter and the value of a line; nil unless it is `x=…` without control characters.
  private static func split(_ line: Substring.UTF8View) -> (UInt8, String)? {
    guard let type = line.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(type),
      line.dropFirst().first == UInt8(ascii: "="), !line.contains(0), !line.contains(UInt8(ascii: "\r"))
    else { return nil }
    return (type, String(Substring(line.dropFirst(2))))
  }
}

extension SDPOrigin {
  /// `username id version nettype addrtype address`.
  init?(parsing value: String) {
    let words = value.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 6, let sessionID: UInt64 = decimal(words[1]), let version: UInt64 = decimal(words[2])
    else { return nil }
    self.init(sessionID: sessionID, version: version)
  }
}

extension SDPAttribute {
  init?(parsing text: String) {
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else {
      guard !text.isEmpty else { return nil }
      self.init(text)
      return
    }
    guard colon > text.startIndex else { return nil }
    self.init(String(text[..<colon]), String(text[text.utf8.index(after: colon)...]))
  }
}

/// A number in ASCII digits alone; the standard library would take a sign too.
func decimal<Number: FixedWidthInteger>(_ text: some StringProtocol) -> Number? {
  guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
    return nil
  }
  return Number(text)
}

/// The part before the first space, and the rest; nil for an empty first part.
func splitWord(_ text: String) -> (word: Substring, rest: Substring)? {
  let word = text.prefix { $0 != " " }
  guard !word.isEmpty else { return nil }
  return (word, text[word.endIndex...].drop { $0 == " " })
}

/// An ASCII letter or digit.
func isAlphanumeric(_ byte: UInt8) -> Bool {
  (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
}
