import PalbeUnits
import Testing

@testable import palbe_chat

@Suite("The line that is typed in palbe-chat")
struct LineEditorTests {
  private func typed(_ text: String, into editor: inout LineEditor) -> LineEditor.Key {
    Array(text.utf8).reduce(LineEditor.Key.nothing) { $1 == 0 ? $0 : editor.take($1) }
  }

  @Test("Letters, accents, emoji and their modifiers are characters; Return gives the line")
  func typing() {
    var editor = LineEditor()
    _ = typed("hé 👍🏽 👨‍👩‍👧 e\u{301}", into: &editor)
    #expect(editor.text == "hé 👍🏽 👨‍👩‍👧 e\u{301}")
    #expect(editor.characters.count == 8)
    #expect(editor.take(0x0d) == .line("hé 👍🏽 👨‍👩‍👧 e\u{301}"))
    #expect(editor.text.isEmpty)
  }

  @Test("Keys of a shell: arrows, Home, End, Delete, Control-A, -E, -K, -U, -W")
  func keys() {
    var editor = LineEditor()
    _ = typed("one two three", into: &editor)
    _ = typed("\u{1B}[D\u{1B}[D\u{7F}", into: &editor)
    #expect(editor.text == "one two thee")
    _ = typed("\u{17}", into: &editor)
    #expect(editor.text == "one two ee")
    _ = typed("\u{1B}[H\u{1B}[3~X", into: &editor)
    #expect(editor.text == "Xne two ee")
    _ = typed("\u{05}!\u{01}\u{06}\u{0B}", into: &editor)
    #expect(editor.text == "X")
    _ = typed("\u{15}", into: &editor)
    #expect(editor.text.isEmpty)
  }

  @Test("Earlier lines come back with the arrows; a password never does")
  func history() {
    var editor = LineEditor()
    _ = typed("first\rsecond\r", into: &editor)
    for byte in "secret".utf8 { _ = editor.take(byte, remembers: false) }
    #expect(editor.take(0x0d, remembers: false) == .line("secret"))
    _ = typed("\u{1B}[A", into: &editor)
    #expect(editor.text == "second")
    _ = typed("\u{1B}[A\u{1B}[A", into: &editor)
    #expect(editor.text == "first")
    _ = typed("\u{1B}[B\u{1B}[B", into: &editor)
    #expect(editor.text.isEmpty)
  }

  @Test("Any bytes are taken, in bounded memory, and the window always has the cursor")
  func garbage() {
    var random = RandomSource(seed: 1)
    var editor = LineEditor()
    for _ in 0..<20_000 {
      _ = editor.take(UInt8(truncatingIfNeeded: random.next()))
      #expect((0...editor.characters.count).contains(editor.position))
      let window = editor.window(20)
      #expect(window.column <= 20 && columns(window.text) <= 20)
    }
    for _ in 0..<LineEditor.maximumCount + 100 { _ = editor.take(0x61) }
    #expect(editor.characters.count <= LineEditor.maximumCount)
  }
}
