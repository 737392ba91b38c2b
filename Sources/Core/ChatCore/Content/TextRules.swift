/// What a text, an emoji and a file's name may be.
package enum TextRules {
  /// Whether it is one grapheme of at most 32 bytes that is neither white space nor a control (2.9j).
  package static func isEmoji(_ emoji: String) -> Bool {
    guard emoji.utf8.count <= ContentLimits.emojiByteCount, let character = emoji.first,
      let scalar = emoji.unicodeScalars.first
    else { return false }
    return emoji.dropFirst().isEmpty && !character.isWhitespace
      && scalar.properties.generalCategory != .control
  }

  /// Whether it names a file and no way to another folder.
  package static func isFilename(_ name: String) -> Bool {
    name != "." && name != ".."
      && name.unicodeScalars.allSatisfy {
        $0 != "/" && $0 != "\\" && $0.properties.generalCategory != .control
      }
  }

  /// Which of the mentions can stand, by their index: those that are not empty, lie inside the text, cut no surrogate
  /// pair and do not overlap one before them that stands (S0-77).
  package static func standing(_ mentions: [Mention], in text: String) -> [Int] {
    guard !mentions.isEmpty else { return [] }
    var wanted: Set<Int> = []
    for mention in mentions where mention.start >= 0 && mention.length > 0 {
      let (end, overflow) = mention.start.addingReportingOverflow(mention.length)
      if !overflow { wanted.formUnion([mention.start, end]) }
    }
    // The places between scalars; what is past the end or inside of a pair is not among them.
    var boundaries: Set<Int> = [0]
    var place = 0
    for scalar in text.unicodeScalars {
      place += UTF16.width(scalar)
      if wanted.contains(place) { boundaries.insert(place) }
    }
    var ranges: [Range<Int>] = []
    var indices: [Int] = []
    for (index, mention) in mentions.enumerated() where mention.start >= 0 && mention.length > 0 {
      let (end, overflow) = mention.start.addingReportingOverflow(mention.length)
      guard !overflow, boundaries.contains(mention.start), boundaries.contains(end) else { continue }
      let range = mention.start..<end
      guard !ranges.contains(where: { $0.overlaps(range) }) else { continue }
      ranges.append(range)
      indices.append(index)
    }
    return indices
  }
}
