/// What a Y4M (YUV4MPEG2) file's first line says. We read 4:2:0 with eight bits a sample, progressive.
public struct Y4MHeader: Equatable, Sendable {
  /// Pixels in a row, 2 to 4,096.
  public var width: Int
  /// Rows, 2 to 4,096.
  public var height: Int
  /// Pictures a second as a fraction, both parts positive; between 1 and 240 a second.
  public var rate: (numerator: Int, denominator: Int) { (numerator, denominator) }

  private var numerator: Int
  private var denominator: Int

  /// Bytes of a picture's planes.
  public var pictureByteCount: Int { width * height + 2 * (((width + 1) / 2) * ((height + 1) / 2)) }

  /// Bytes that the first line may have, without its newline.
  public static let maximumByteCount = 256

  /// A file of the given size and rate; traps when they are out of range.
  public init(width: Int, height: Int, framesPerSecond: Int) {
    precondition(Self.sides.contains(width) && Self.sides.contains(height))
    precondition((1...240).contains(framesPerSecond))
    (self.width, self.height, numerator, denominator) = (width, height, framesPerSecond, 1)
  }

  private static let sides = 2...4_096

  /// The line as it is written, with its newline.
  public var line: String { "YUV4MPEG2 W\(width) H\(height) F\(numerator):\(denominator) Ip A1:1 C420jpeg\n" }

  /// Parses the first line without its newline.
  public static func parse(_ line: String) throws(MediaFileError.Problem) -> Y4MHeader {
    let words = line.split(separator: " ", omittingEmptySubsequences: true)
    guard words.first == "YUV4MPEG2" else { throw .notRecognised(expected: "a Y4M file (YUV4MPEG2)") }
    var width: Int?
    var height: Int?
    var rate: (Int, Int)?
    for word in words.dropFirst() {
      let value = word.dropFirst()
      switch word.first {
      case "W": width = try side("the width", value)
      case "H": height = try side("the height", value)
      case "F": rate = try parseRate(value)
      case "I":
        guard value == "p" || value == "?" else {
          throw .unsupported(what: "the interlacing", found: "I\(value)", expected: "Ip (progressive)")
        }
      case "C":
        // The suffixes say where chroma is sampled; ones such as "420p10" have more bits.
        guard ["420", "420jpeg", "420mpeg2", "420paldv"].contains(value) else {
          throw .unsupported(what: "the colour format", found: "C\(value)", expected: "C420 with 8 bits")
        }
      default: break
      }
    }
    guard let width else { throw .malformed(what: "the header", found: "without a width", expected: "W640") }
    guard let height else {
      throw .malformed(what: "the header", found: "without a height", expected: "H360")
    }
    guard let rate else {
      throw .malformed(what: "the header", found: "without a frame rate", expected: "F30:1")
    }
    var header = Y4MHeader(width: width, height: height, framesPerSecond: 1)
    (header.numerator, header.denominator) = rate
    return header
  }

  private static func side(_ what: String, _ text: Substring) throws(MediaFileError.Problem) -> Int {
    guard let value = Int(text), sides.contains(value) else {
      throw .malformed(what: what, found: "\"\(text)\"", expected: "2 to 4096")
    }
    return value
  }

  private static func parseRate(_ text: Substring) throws(MediaFileError.Problem) -> (Int, Int) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    let limit = 1...1_000_000_000
    guard parts.count == 2, let numerator = Int(parts[0]), let denominator = Int(parts[1]),
      limit.contains(numerator), limit.contains(denominator), numerator >= denominator,
      numerator <= 240 * denominator
    else {
      throw .malformed(what: "the frame rate", found: "\"\(text)\"", expected: "1 to 240 a second, as F30:1")
    }
    return (numerator, denominator)
  }
}
