import PalbeUnits
import PalbeWire
import Testing

struct Base64Tests {
  @Test(
    "RFC 4648 §10: test vectors",
    arguments: [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
      ("foobar", "Zm9vYmFy"),
    ])
  func vectors(_ plain: String, _ text: String) {
    #expect(Base64.encode(Array(plain.utf8)) == text)
    #expect(Base64.decode(text) == Array(plain.utf8))
    let unpadded = String(text.prefix { $0 != "=" })
    #expect(Base64.encode(Array(plain.utf8), padded: false) == unpadded)
    #expect(Base64.decode(unpadded) == Array(plain.utf8))
  }

  @Test("RFC 4648 §5: the URL alphabet differs in two characters, and neither reads the other's")
  func urlAlphabet() {
    let bytes: [UInt8] = [0xfb, 0xff, 0xbf]
    #expect(Base64.encode(bytes) == "+/+/")
    #expect(Base64.encode(bytes, alphabet: .url) == "-_-_")
    #expect(Base64.decode("-_-_", alphabet: .url) == bytes)
    #expect(Base64.decode("-_-_") == nil)
    #expect(Base64.decode("+/+/", alphabet: .url) == nil)
  }

  @Test("every length up to 200 comes back, in both alphabets, padded or not")
  func roundTrip() {
    var random = RandomSource(seed: 7)
    for count in 0...200 {
      let bytes = random.bytes(count)
      for alphabet in [Base64.Alphabet.standard, .url] {
        for padded in [true, false] {
          let text = Base64.encode(bytes, alphabet: alphabet, padded: padded)
          #expect(Base64.decode(text, alphabet: alphabet) == bytes)
        }
      }
    }
  }

  @Test(
    "malformed text is nil",
    arguments: [
      "Z", "Zg=", "Zg===", "=", "==", "====", "Zm9v=", "Zm=v", "Zg\n", "Zm9vé", "Zh==", "Zm9=", "Z===",
      "Zm 9v",
    ])
  func malformed(_ text: String) {
    #expect(Base64.decode(text) == nil)
  }
}
