/// A number of JSON's grammar, taken apart without rounding.
struct JSONNumber {
  private var isNegative = false
  /// Decimal digits without leading zeros; the value is these times ten to the `exponent`.
  private var digits: [UInt8] = []
  private var exponent = 0

  /// `text` must follow the grammar of RFC 8259 §6, as `JSONReader.number` checked it.
  init(_ text: ArraySlice<UInt8>) {
    var part = Part.whole
    var written = 0
    var isExponentNegative = false
    for byte in text {
      switch (byte, part) {
      case (UInt8(ascii: "-"), .exponent): isExponentNegative = true
      case (UInt8(ascii: "-"), _): isNegative = true
      case (UInt8(ascii: "+"), _): break
      case (UInt8(ascii: "."), _): part = .fraction
      case (UInt8(ascii: "0")...UInt8(ascii: "9"), .exponent):
        // Beyond every number that fits, and far from overflowing.
        if written < 100_000 { written = written * 10 + Int(byte - UInt8(ascii: "0")) }
      case (UInt8(ascii: "0")...UInt8(ascii: "9"), _):
        if part == .fraction { exponent -= 1 }
        if !digits.isEmpty || byte != UInt8(ascii: "0") { digits.append(byte - UInt8(ascii: "0")) }
      default: part = .exponent
      }
    }
    exponent += isExponentNegative ? -written : written
  }

  private enum Part { case whole, fraction, exponent }

  /// The number as a `Value`; one that is not whole or does not fit throws with `offset`.
  func integer<Value: FixedWidthInteger>(_ type: Value.Type, at offset: Int) throws(JSONError) -> Value {
    var digits = digits
    var exponent = exponent
    while exponent < 0, digits.last == 0 {
      digits.removeLast()
      exponent += 1
    }
    guard !digits.isEmpty else { return 0 }
    // 2^64 has twenty digits.
    guard exponent >= 0, digits.count + exponent <= 20 else { throw .outOfRange(at: offset) }
    var value: Value = 0
    for digit in digits + [UInt8](repeating: 0, count: exponent) {
      let (tens, overflow) = value.multipliedReportingOverflow(by: 10)
      // Negative numbers are built downwards, so that the least one fits.
      let (sum, carry) =
        isNegative
        ? tens.subtractingReportingOverflow(Value(digit)) : tens.addingReportingOverflow(Value(digit))
      guard !overflow, !carry else { throw .outOfRange(at: offset) }
      value = sum
    }
    return value
  }
}
