import PalbeMLSMessages
import PalbeTestKit
import PalbeWire
import Testing

/// Decodes all of the bytes and encodes again.
func reencode<T: MLSCodable>(_ type: T.Type, _ hex: String, prefix: [UInt8] = []) throws -> String {
  let bytes = try #require(Hex.decode(hex))
  return Hex.encode(Array(try T(decoding: prefix + bytes).encoded().dropFirst(prefix.count)))
}

struct DeserializationCase: Decodable {
  let vlbytes_header: String
  let length: Int
}

@Suite("RFC 9420: published wire vectors")
struct VectorTests {
  @Test(
    "RFC 9420 §2.1.2: deserialization.json",
    .enabled(if: Vectors.has("mls/deserialization.json"), "mls/deserialization.json absent: skipped"))
  func lengthHeaders() throws {
    let cases = try Vectors.load("mls/deserialization.json", as: [DeserializationCase].self)
    for item in cases {
      let header = try #require(Hex.decode(item.vlbytes_header))
      var reader = ByteReader(header.span)
      let length = try reader.vectorLength()
      #expect(length == item.length)
      try reader.finish()
      var writer = ByteWriter()
      writer.vectorLength(item.length)
      #expect(writer.bytes == header)
    }
    print("deserialization.json: \(cases.count) cases")
  }

  @Test(
    "RFC 9420: messages.json decodes and encodes byte for byte",
    .enabled(if: Vectors.has("mls/messages.json"), "mls/messages.json absent: skipped"))
  func messages() throws {
    let cases = try Vectors.load("mls/messages.json", as: [[String: String]].self)
    var structures = 0
    for item in cases {
      for (name, hex) in item {
        let again: String
        switch name {
        case "mls_welcome", "mls_group_info", "mls_key_package", "public_message_application",
          "public_message_proposal", "public_message_commit", "private_message":
          again = try reencode(MLSMessage.self, hex)
        case "ratchet_tree": again = try reencode(RatchetTreeExtension.self, hex)
        case "commit": again = try reencode(Commit.self, hex)
        case "add_proposal": again = try reencode(Proposal.self, hex, prefix: [0, 1])
        case "update_proposal": again = try reencode(Proposal.self, hex, prefix: [0, 2])
        case "remove_proposal": again = try reencode(Proposal.self, hex, prefix: [0, 3])
        case "pre_shared_key_proposal": again = try reencode(Proposal.self, hex, prefix: [0, 4])
        case "re_init_proposal": again = try reencode(Proposal.self, hex, prefix: [0, 5])
        case "external_init_proposal": again = try reencode(Proposal.self, hex, prefix: [0, 6])
        case "group_context_extensions_proposal": again = try reencode(Proposal.self, hex, prefix: [0, 7])
        case "group_secrets": continue  // Holds secrets: decoded by PalbeMLS.
        default:
          Issue.record("unknown structure \(name)")
          continue
        }
        #expect(again == hex, "\(name)")
        structures += 1
      }
    }
    print("messages.json: \(cases.count) cases, \(structures) structures")
  }
}
