import Foundation
import PalbeLiveKit
import PalbeProtobuf
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

/// A line of a golden file: what another implementation wrote (`CrossCheck/messages.py golden`).
struct GoldenMessage: Sendable, CustomTestStringConvertible {
  var name: String
  var bytes: [UInt8]
  var json: String
  var testDescription: String { name }

  static func load(_ file: String) -> [GoldenMessage] {
    guard let data = try? Vectors.golden("Tests/PalbeLiveKitTests/Golden/" + file) else { return [] }
    return String(decoding: data, as: UTF8.self).split(separator: "\n").compactMap { line in
      let parts = line.split(separator: "\t", omittingEmptySubsequences: false)
      guard parts.count == 3, let bytes = Hex.decode(parts[1]) else { return nil }
      return GoldenMessage(name: String(parts[0]), bytes: bytes, json: String(parts[2]))
    }
  }

  static let messages = load("messages.txt")
  static let twirp = load("twirp.txt")
}

struct GoldenMessageTests {
  @Test("livekit-protocol.md §1.8, §2: every message is there, each with golden lines")
  func complete() {
    #expect(GoldenMessage.messages.count == 532)
    #expect(Set(GoldenMessage.messages.map(\.name)) == Set(Codec.byName.keys))
    #expect(Codec.all.count == 133)
  }

  @Test("livekit-protocol.md §1.8: every enumeration has the names and numbers of the descriptors")
  func enumerations() throws {
    let data = try Vectors.golden("Tests/PalbeLiveKitTests/Golden/enums.txt")
    let lines = String(decoding: data, as: UTF8.self).split(separator: "\n")
    #expect(lines.count == NamedValues.all.count)
    for line in lines {
      let parts = line.split(separator: " ")
      let known = try #require(NamedValues.all.first { $0.name == parts[0] })
      let expected = parts.dropFirst().map { $0.split(separator: "=") }
      #expect(known.values.count == expected.count, "\(known.name)")
      for value in expected { #expect(known.values[String(value[0])] == Int32(value[1]), "\(line)") }
    }
  }

  @Test("bytes of another implementation come back as they were", arguments: GoldenMessage.messages)
  func roundTrip(_ line: GoldenMessage) throws {
    let codec = try #require(Codec.byName[line.name])
    #expect(try Hex.encode(codec.again(line.bytes)) == Hex.encode(line.bytes))
  }

  @Test(
    "ProtoJSON: a message is the text that another implementation writes", arguments: GoldenMessage.messages)
  func writesJSON(_ line: GoldenMessage) throws {
    let codec = try #require(Codec.byName[line.name])
    #expect(try codec.json(line.bytes, .compact) == line.json)
  }

  @Test("ProtoJSON: the text of another implementation is the message", arguments: GoldenMessage.messages)
  func readsJSON(_ line: GoldenMessage) throws {
    let codec = try #require(Codec.byName[line.name])
    #expect(try Hex.encode(codec.bytes(line.json)) == Hex.encode(line.bytes))
  }

  @Test(
    "livekit-protocol.md §2: Twirp JSON has the protocol's names and all zeros",
    arguments: GoldenMessage.twirp)
  func twirp(_ line: GoldenMessage) throws {
    let codec = try #require(Codec.byName[line.name])
    #expect(try codec.json(line.bytes, .twirp) == line.json)
    #expect(try Hex.encode(codec.bytes(line.json)) == Hex.encode(line.bytes))
  }

  @Test("every prefix decodes or throws, and never traps", arguments: GoldenMessage.messages)
  func truncation(_ line: GoldenMessage) throws {
    let codec = try #require(Codec.byName[line.name])
    for length in 0..<line.bytes.count {
      do throws(ProtobufError) { _ = try codec.again(Array(line.bytes.prefix(length))) } catch {}
    }
  }

  @Test("every prefix of a JSON text throws", arguments: GoldenMessage.messages)
  func truncatedJSON(_ line: GoldenMessage) throws {
    let codec = try #require(Codec.byName[line.name])
    let text = Array(line.json.utf8)
    var failed = 0
    // Of long texts, whose parts have lines of their own, a part of the prefixes.
    let prefixes = stride(from: 0, to: text.count, by: text.count > 500 ? 37 : 1)
    for length in prefixes {
      do throws(JSONError) {
        _ = try codec.bytes(String(decoding: text.prefix(length), as: UTF8.self))
      } catch { failed += 1 }
    }
    #expect(failed == Array(prefixes).count)
  }

  @Test("mutations never trap, on the wire and in JSON", arguments: GoldenMessage.messages)
  func mutations(_ line: GoldenMessage) throws {
    let codec = try #require(Codec.byName[line.name])
    guard !line.bytes.isEmpty else { return }
    var random = RandomSource(seed: UInt64(line.bytes.count))
    let text = Array(line.json.utf8)
    for _ in 0..<30 {
      var bytes = line.bytes
      bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      do throws(ProtobufError) { _ = try codec.again(bytes) } catch {}
      var json = text
      json[Int.random(in: 0..<json.count, using: &random)] = UInt8.random(in: 0...127, using: &random)
      do throws(JSONError) { _ = try codec.bytes(String(decoding: json, as: UTF8.self)) } catch {}
    }
  }
}
