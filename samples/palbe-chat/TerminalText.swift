/// Text of other people as a terminal may show it: on one line, and without anything that moves the cursor, recolours
/// what is there, hides a part of the line or turns its direction round.
func safe(_ text: String) -> String {
  var result = ""
  for scalar in text.unicodeScalars {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned:
      result += escaped(scalar)
    case .format where !joinsEmoji(scalar): result += escaped(scalar)
    default: result.unicodeScalars.append(scalar)
    }
  }
  return result
}

private func escaped(_ scalar: Unicode.Scalar) -> String {
  "\\u{" + String(scalar.value, radix: 16, uppercase: true) + "}"
}

/// Zero-width joiners and tags are parts of emoji; other format characters can reorder a line.
private func joinsEmoji(_ scalar: Unicode.Scalar) -> Bool {
  scalar.value == 0x200D || (0xE0020...0xE007F).contains(scalar.value)
}

/// How many columns a character takes on a terminal.
func columns(_ character: Character) -> Int {
  guard let first = character.unicodeScalars.first else { return 0 }
  if first.properties.isEmojiPresentation || character.unicodeScalars.contains(where: { $0.value == 0xFE0F })
  {
    return 2
  }
  switch first.value {
  case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
    0xFFE0...0xFFE6, 0x1F1E6...0x1F1FF, 0x20000...0x3FFFD:
    return 2
  default:
    switch first.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format, .control: return 0
    default: return 1
    }
  }
}

func columns(_ text: some StringProtocol) -> Int { text.reduce(0) { $0 + columns($1) } }

/// The part of a line that fits, with an ellipsis where something is missing.
func cut(_ text: String, to width: Int) -> String {
  guard columns(text) > width else { return text }
  var result = ""
  var used = 0
  for character in text {
    let count = columns(character)
    guard used + count < width else { break }
    result.append(character)
    used += count
  }
  return width > 0 ? result + "…" : ""
}

/// A line broken into rows that fit, at blanks where there are some.
func wrap(_ text: String, to width: Int) -> [String] {
  guard width > 4 else { return [cut(text, to: width)] }
  var rows: [String] = []
  var row = ""
  var used = 0
  for word in text.split(separator: " ", omittingEmptySubsequences: false) {
    let count = columns(word)
    if used > 0, used + 1 + count > width {
      rows.append(row)
      (row, used) = ("", 0)
    } else if used > 0 || !row.isEmpty {
      row += " "
      used += 1
    }
    for character in word {
      let count = columns(character)
      if used + count > width {
        rows.append(row)
        (row, used) = ("", 0)
      }
      row.append(character)
      used += count
    }
  }
  return rows + [row]
}

/// A bar such as `████░░░░ 52 %`.
func bar(_ fraction: Double, width: Int = 16) -> String {
  let part = min(1, max(0, fraction))
  let full = Int(part * Double(width))
  return String(repeating: "█", count: full) + String(repeating: "░", count: width - full)
    + " \(Int(part * 100)) %"
}
