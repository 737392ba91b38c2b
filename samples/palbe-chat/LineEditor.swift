/// The line that is being typed. It takes a terminal's bytes and knows nothing of the terminal.
struct LineEditor {
  enum Key: Equatable {
    /// The line is complete.
    case line(String)
    case changed
    /// The program shall end: Control-D on an empty line, or Control-C.
    case end
    case tab
    case pageUp, pageDown
    case nothing
  }
  private(set) var characters: [Character] = []
  /// Where the next character goes.
  private(set) var position = 0
  private var history: [String] = []
  private var historyIndex = 0
  /// Bytes of a character or of an escape sequence that is not complete.
  private var pending: [UInt8] = []
  static let maximumCount = 16_384

  var text: String { String(characters) }

  /// Takes one byte.
  /// - Parameter remembers: whether a complete line can be recalled.
  mutating func take(_ byte: UInt8, remembers: Bool = true) -> Key {
    if !pending.isEmpty || byte == 0x1B || byte >= 0x80 { return sequence(byte) }
    switch byte {
    case 0x0D, 0x0A: return finish(remembers)
    case 0x03: return .end
    case 0x04: return characters.isEmpty ? .end : remove(at: position)
    case 0x09: return .tab
    case 0x7F, 0x08: return position > 0 ? remove(at: position - 1, isBehind: true) : .nothing
    case 0x01: return move(to: 0)
    case 0x05: return move(to: characters.count)
    case 0x02: return move(to: position - 1)
    case 0x06: return move(to: position + 1)
    case 0x0B: return replace(Array(characters[..<position]), position)
    case 0x15: return replace(Array(characters[position...]), 0)
    case 0x17: return removeWord()
    case 0x10: return recall(-1)
    case 0x0E: return recall(1)
    case 0x20...0x7E: return insert(Character(Unicode.Scalar(byte)))
    default: return .nothing
    }
  }

  mutating func clear() { _ = replace([], 0) }

  private mutating func sequence(_ byte: UInt8) -> Key {
    pending.append(byte)
    if pending[0] == 0x1B { return escape() }
    let needed = pending[0] >= 0xF0 ? 4 : pending[0] >= 0xE0 ? 3 : pending[0] >= 0xC0 ? 2 : 1
    guard pending.count >= needed else { return .nothing }
    let scalars = String(decoding: pending, as: UTF8.self)
    pending = []
    guard let scalar = scalars.unicodeScalars.first, scalar.value != 0xFFFD else { return .nothing }
    // A mark, or a part of an emoji, joins the character before it.
    if position > 0 {
      var joined = characters[position - 1]
      let text = String(joined) + scalars
      if text.count == 1 {
        joined = Character(text)
        characters[position - 1] = joined
        return .changed
      }
    }
    return insert(Character(scalar))
  }

  private mutating func escape() -> Key {
    guard pending.count > 1 else { return .nothing }
    guard pending[1] == UInt8(ascii: "[") || pending[1] == UInt8(ascii: "O") else {
      pending = []
      return .nothing
    }
    guard pending.count > 2, let last = pending.last, (0x40...0x7E).contains(last) else {
      if pending.count > 16 { pending = [] }
      return .nothing
    }
    let body = String(decoding: pending.dropFirst(2), as: UTF8.self)
    pending = []
    switch body {
    case "D": return move(to: position - 1)
    case "C": return move(to: position + 1)
    case "H", "1~": return move(to: 0)
    case "F", "4~": return move(to: characters.count)
    case "A": return recall(-1)
    case "B": return recall(1)
    case "3~": return position < characters.count ? remove(at: position) : .nothing
    case "5~": return .pageUp
    case "6~": return .pageDown
    default: return .nothing
    }
  }

  private mutating func finish(_ remembers: Bool) -> Key {
    let line = text
    if remembers, !line.isEmpty, history.last != line { history.append(line) }
    if history.count > 200 { history.removeFirst() }
    historyIndex = history.count
    clear()
    return .line(line)
  }

  private mutating func insert(_ character: Character) -> Key {
    guard characters.count < Self.maximumCount else { return .nothing }
    characters.insert(character, at: position)
    position += 1
    return .changed
  }

  private mutating func remove(at index: Int, isBehind: Bool = false) -> Key {
    guard characters.indices.contains(index) else { return .nothing }
    characters.remove(at: index)
    if isBehind { position -= 1 }
    return .changed
  }

  private mutating func removeWord() -> Key {
    var start = position
    while start > 0, characters[start - 1] == " " { start -= 1 }
    while start > 0, characters[start - 1] != " " { start -= 1 }
    return replace(Array(characters[..<start] + characters[position...]), start)
  }

  private mutating func move(to index: Int) -> Key {
    position = min(max(0, index), characters.count)
    return .changed
  }

  private mutating func replace(_ new: [Character], _ position: Int) -> Key {
    characters = new
    self.position = position
    return .changed
  }

  private mutating func recall(_ step: Int) -> Key {
    let index = historyIndex + step
    guard (0...history.count).contains(index) else { return .nothing }
    historyIndex = index
    let line = index < history.count ? Array(history[index]) : []
    return replace(line, line.count)
  }
}

extension LineEditor {
  /// What fits of the line into `width` columns around the cursor, and the cursor's column in it.
  func window(_ width: Int) -> (text: String, column: Int) {
    var start = 0
    while columns(String(characters[start..<position])) >= max(1, width) { start += 1 }
    var shown = ""
    var used = 0
    for character in characters[start...] {
      let count = columns(character)
      guard used + count <= width else { break }
      shown.append(character)
      used += count
    }
    return (shown, columns(String(characters[start..<position])))
  }
}
