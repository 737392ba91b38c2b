import PalbeCrypto
import PalbeWire
import Testing

/// The bytes of a hexadecimal literal; spaces between groups are allowed.
func hex(_ text: String) -> [UInt8] {
  guard let bytes = Hex.decode(text.filter { $0 != " " }) else { fatalError("not hexadecimal: \(text)") }
  return bytes
}

func bytes(_ span: Span<UInt8>) -> [UInt8] { [UInt8](span) }

/// The bytes of a secret, to compare with a vector.
func bytes(_ key: borrowing SymmetricKey) -> [UInt8] { [UInt8](key.span) }

/// Decodes what a Wycheproof file states in hexadecimal.
struct HexBytes: Decodable, Sendable {
  let bytes: [UInt8]
  init(from decoder: any Decoder) throws {
    let text = try decoder.singleValueContainer().decode(String.self)
    bytes = hex(text)
  }
}

/// The part that all Wycheproof files share.
struct Wycheproof<Group: Decodable & Sendable>: Decodable, Sendable {
  let testGroups: [Group]
}

/// What Wycheproof expects. `acceptable` leaves the choice to the implementation.
enum Verdict: String, Decodable, Sendable { case valid, invalid, acceptable }

/// `#expect` for calls whose arguments it cannot copy: spans and noncopyable values.
func expect(_ condition: Bool, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation) {
  #expect(condition, comment, sourceLocation: sourceLocation)
}
