import PalbeCrypto
import PalbeMLSMessages
import PalbeTestKit
import PalbeWire
import Testing

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

  /// A private key of `count` bytes: some vectors leave out the leading zeros of a scalar.
  func key(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: max(0, count - bytes.count)) + bytes }
  func signatureKey(_ crypto: SuiteCrypto) throws -> SignatureKey {
    let bytes = key(crypto.signatures.privateKeyByteCount)
    return try SignatureKey(crypto.signatures, rawRepresentation: bytes.span)
  }
  func hpkeKey(_ crypto: SuiteCrypto) -> Secret {
    Secret(copying: key(crypto.hpke.kem.privateKeyByteCount))
  }
}

extension Secret {
  var bytes: [UInt8] { [UInt8](span) }
}

/// A case that names its suite.
protocol SuiteCase: Decodable {
  var cipher_suite: UInt16 { get }
}

/// The cases of a file, printed by count; one of a suite that the engine lacks is a failure.
func implementedCases<Case: SuiteCase>(_ name: String, as type: Case.Type = Case.self) throws -> [Case] {
  let all = try Vectors.load("mls/\(name).json", as: [Case].self)
  let ours = all.filter { (try? SuiteCrypto(.init(rawValue: $0.cipher_suite))) != nil }
  #expect(ours.count == all.count, "\(name).json has cases of suites that the engine lacks")
  print("\(name).json: \(ours.count) of \(all.count) cases")
  return ours
}

extension SuiteCase {
  func crypto() throws -> SuiteCrypto { try SuiteCrypto(.init(rawValue: cipher_suite)) }
}
