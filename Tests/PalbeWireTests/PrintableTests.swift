import PalbeWire
import Testing

@Suite("Text from elsewhere never reaches a terminal raw")
struct PrintableTests {
  @Test(
    "control characters and line separators are spelled out, the rest stays",
    arguments: [
      ("ada", "ada"), ("Zoë 👩‍💻 \\", "Zoë 👩‍💻 \\"), ("\u{1B}[2Ja\nb", "\\u{1B}[2Ja\\u{A}b"),
      ("\r\n\t\0", "\\u{D}\\u{A}\\u{9}\\u{0}"), ("\u{7F}\u{80}\u{9B}31m", "\\u{7F}\\u{80}\\u{9B}31m"),
      ("\u{2028}\u{2029}", "\\u{2028}\\u{2029}"), ("", ""),
    ])
  func spelledOut(text: String, expected: String) {
    #expect(printable(text) == expected)
    #expect(printable(expected) == expected)
  }
}
