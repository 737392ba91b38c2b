/// A moment (`google.protobuf.Timestamp`). In JSON it is a text such as `2026-01-02T03:04:05.500Z` (RFC 3339).
public struct ProtobufTimestamp: ProtobufMessage {
  /// Unix seconds.
  public var seconds: Int64 = 0
  /// Nanoseconds after them, also for a moment before 1970; 0 to 999,999,999.
  public var nanos: Int32 = 0
  /// Fields this version does not know, as they came.
  public var unknownFields: [UInt8] = []

  /// The first moment of 1970.
  public init() {}

  public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "seconds", &seconds)
    try f.field(2, "nanos", &nanos)
    try f.unknown(&unknownFields)
  }

  /// Year 1 to year 9999, beyond which there is no text.
  private static let range: ClosedRange<Int64> = -62_135_596_800...253_402_300_799

  /// Universal time with as many digits after the point as are needed, in threes; nil outside the years 1 to 9999.
  public var jsonText: String? {
    guard Self.range.contains(seconds), (0..<1_000_000_000).contains(nanos) else { return nil }
    let secondOfDay = ((seconds % 86_400) + 86_400) % 86_400
    let date = CivilDate(day: (seconds - secondOfDay) / 86_400)
    func padded(_ number: Int64, _ width: Int) -> String {
      let digits = String(number)
      return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
    var text = padded(date.year, 4) + "-" + padded(date.month, 2) + "-" + padded(date.day, 2)
    text += "T" + padded(secondOfDay / 3_600, 2) + ":" + padded(secondOfDay / 60 % 60, 2)
    text += ":" + padded(secondOfDay % 60, 2)
    if nanos % 1_000 != 0 {
      text += "." + padded(Int64(nanos), 9)
    } else if nanos % 1_000_000 != 0 {
      text += "." + padded(Int64(nanos / 1_000), 6)
    } else if nanos != 0 {
      text += "." + padded(Int64(nanos / 1_000_000), 3)
    }
    return text + "Z"
  }

  /// Takes a moment in universal time or with an offset from it.
  public mutating func set(jsonText: String) -> Bool {
    var text = DateText(Array(jsonText.utf8))
    guard let year = text.digits(4), text.take("-"), let month = text.digits(2), text.take("-"),
      let day = text.digits(2), text.take("T"), let hour = text.digits(2), text.take(":"),
      let minute = text.digits(2), text.take(":"), let second = text.digits(2),
      let fraction = text.fraction(), let offset = text.offset(), text.isAtEnd,
      hour < 24, minute < 60, second < 60, let date = CivilDate(year: year, month: month, day: day)
    else { return false }
    let seconds = date.daysSince1970 * 86_400 + hour * 3_600 + minute * 60 + second - offset
    guard Self.range.contains(seconds) else { return false }
    (self.seconds, nanos) = (seconds, fraction)
    return true
  }
}

/// A day of the Gregorian calendar, also before it was used.
private struct CivilDate {
  var year: Int64
  var month: Int64
  var day: Int64

  /// The days of 400 years.
  private static let era: Int64 = 146_097
  /// From the first of March of year 0 to the first of January 1970.
  private static let epoch: Int64 = 719_468

  /// `day` days after the first of January 1970. Years are counted from March, so that a leap day is the last.
  init(day: Int64) {
    let shifted = day + Self.epoch
    let era = (shifted >= 0 ? shifted : shifted - Self.era + 1) / Self.era
    let ofEra = shifted - era * Self.era
    let yearOfEra = (ofEra - ofEra / 1_460 + ofEra / 36_524 - ofEra / 146_096) / 365
    let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let marchMonth = (5 * ofYear + 2) / 153
    self.day = ofYear - (153 * marchMonth + 2) / 5 + 1
    month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  /// Nil for a day that is not in the calendar.
  init?(year: Int64, month: Int64, day: Int64) {
    (self.year, self.month, self.day) = (year, month, day)
    guard year >= 1, (1...12).contains(month), day >= 1 else { return nil }
    let again = CivilDate(day: daysSince1970)
    guard again.year == year, again.month == month, again.day == day else { return nil }
  }

  var daysSince1970: Int64 {
    let marchYear = month <= 2 ? year - 1 : year
    let era = marchYear / 400
    let yearOfEra = marchYear - era * 400
    let ofYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * Self.era + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + ofYear - Self.epoch
  }
}

private struct DateText {
  private let bytes: [UInt8]
  private var at = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var isAtEnd: Bool { at == bytes.count }

  mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard at < bytes.count, bytes[at] == UInt8(ascii: character) else { return false }
    at += 1
    return true
  }

  mutating func digits(_ count: Int) -> Int64? {
    guard bytes.count - at >= count else { return nil }
    var value: Int64 = 0
    for byte in bytes[at..<at + count] {
      guard (0x30...0x39).contains(byte) else { return nil }
      value = value * 10 + Int64(byte - 0x30)
    }
    at += count
    return value
  }

  /// Nanoseconds: nothing, or a point and one to nine digits.
  mutating func fraction() -> Int32? {
    guard take(".") else { return 0 }
    var (value, count): (Int32, Int) = (0, 0)
    while at < bytes.count, (0x30...0x39).contains(bytes[at]) {
      guard count < 9 else { return nil }
      value = value * 10 + Int32(bytes[at] - 0x30)
      count += 1
      at += 1
    }
    guard count > 0 else { return nil }
    for _ in count..<9 { value *= 10 }
    return value
  }

  /// Seconds east of universal time.
  mutating func offset() -> Int64? {
    if take("Z") { return 0 }
    let isEast = take("+")
    guard isEast || take("-"), let hours = digits(2), take(":"), let minutes = digits(2), hours < 24,
      minutes < 60
    else { return nil }
    return (hours * 3_600 + minutes * 60) * (isEast ? 1 : -1)
  }
}
