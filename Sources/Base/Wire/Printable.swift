/// Text from elsewhere as it may be shown on a terminal, on one line.
///
/// Control characters (C0, DEL, C1) and line separators come out as `\u{1B}`: they could move the cursor, recolour what is
/// already there or fake a line of ours. The rest stays as it is, so a second pass changes nothing.
package func printable(_ text: String) -> String {
  var result = ""
  for scalar in text.unicodeScalars {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator:
      result += "\\u{" + String(scalar.value, radix: 16, uppercase: true) + "}"
    default: result.unicodeScalars.append(scalar)
    }
  }
  return result
}
