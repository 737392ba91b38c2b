import PalbeMLSMessages
import PalbeTestKit
import PalbeWire

@testable import PalbeMLS

/// Bytes as a vector file writes them.
struct HexBytes: Decodable, Equatable, CustomStringConvertible {
  let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let bytes = Hex.decode(text) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not hexadecimal")
    }
    self.bytes = bytes
  }

  var description: String { Hex.encode(bytes) }
  var secret: Secret { Secret(copying: bytes) }
}

extension Secret {
  var bytes: [UInt8] { [UInt8](span) }
}

/// A case that names its suite; the tests run those that the engine implements.
protocol SuiteCase: Decodable {
  var cipher_suite: UInt16 { get }
}

/// The cases of a file that the engine implements, with how many there are in all.
func implementedCases<Case: SuiteCase>(_ name: String, as type: Case.Type = Case.self) throws -> [Case] {
  let all = try Vectors.load("mls/\(name).json", as: [Case].self)
  let ours = all.filter { (try? SuiteCrypto(.init(rawValue: $0.cipher_suite))) != nil }
  print("\(name).json: \(ours.count) of \(all.count) cases")
  return ours
}

extension SuiteCase {
  func crypto() throws -> SuiteCrypto { try SuiteCrypto(.init(rawValue: cipher_suite)) }
}
