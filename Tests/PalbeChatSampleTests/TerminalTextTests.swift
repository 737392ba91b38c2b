import Testing

@testable import palbe_chat

@Suite("What palbe-chat shows of others")
struct TerminalTextTests {
  @Test(
    "Nothing of others moves the cursor, colours the screen, breaks a line or turns its direction",
    arguments: [
      ("\u{1B}[31mred", "\\u{1B}[31mred"), ("a\nb\rc\td", "a\\u{A}b\\u{D}c\\u{9}d"),
      ("\u{9B}2J", "\\u{9B}2J"),
      ("\u{202E}txt.exe", "\\u{202E}txt.exe"), ("\u{2066}x\u{2069}", "\\u{2066}x\\u{2069}"),
      ("a\u{2028}b", "a\\u{2028}b"), ("\u{FEFF}", "\\u{FEFF}"), ("\u{E000}", "\\u{E000}"),
    ])
  func hostile(_ text: String, _ shown: String) {
    #expect(safe(text) == shown)
    #expect(safe(safe(text)) == safe(text))
  }

  @Test("What people write stays as it is", arguments: ["grüß Gott", "日本語", "👨‍👩‍👧 👍🏽", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "שלום", "e\u{301}"])
  func harmless(_ text: String) { #expect(safe(text) == text) }

  @Test("Lines are cut and broken at columns, wide characters too")
  func widths() {
    #expect(columns("日本 👍🏽 e\u{301}") == 9)
    #expect(cut("日本語です", to: 5) == "日本…")
    #expect(cut("short", to: 5) == "short")
    #expect(wrap("one two three", to: 7) == ["one two", "three"])
    for row in wrap(String(repeating: "日本語 word ", count: 30), to: 11) { #expect(columns(row) <= 11) }
    #expect(bar(0.5, width: 4) == "██░░ 50 %")
    #expect(bar(7, width: 4) == "████ 100 %")
  }
}
