import PalbeWire
import Testing

struct HexTests {
  @Test("bytes are written in lower case and read in either")
  func roundTrip() {
    let bytes = (0...255).map { UInt8($0) }
    #expect(Hex.encode([0x00, 0x0f, 0xa5, 0xff]) == "000fa5ff")
    #expect(Hex.decode("00 0F".filter { $0 != " " }) == [0, 15])
    #expect(Hex.decode(Hex.encode(bytes)) == bytes)
    #expect(Hex.decode(Hex.encode(bytes).uppercased()) == bytes)
    #expect(Hex.decode("") == [])
  }

  @Test(
    "an odd length or another character is nil",
    arguments: ["a", "abc", "0g", "0x12", "é0", " 12 ", "/0", ":0", "@0"])
  func malformed(_ text: String) {
    #expect(Hex.decode(text) == nil)
  }
}
