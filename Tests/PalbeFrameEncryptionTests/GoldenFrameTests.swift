import Foundation
import PalbeCrypto
import PalbeTestKit
import PalbeWire
import Testing

@testable import PalbeFrameEncryption

@Suite("The frame format's golden vectors")
struct GoldenFrameTests {
  struct Case: Decodable {
    let key, room, identity, base_key, frame_key, salt, frame, sealed: String
    let context, counter, kid: UInt64
    let source: UInt8
    let key_identifier: UInt32
    let clear: Int
  }

  static let cases: [Case] = {
    guard let data = try? Vectors.golden("Tests/PalbeFrameEncryptionTests/Golden/call-keys.json") else {
      return []
    }
    return (try? JSONDecoder().decode([Case].self, from: data)) ?? []
  }()

  static func codec(_ source: FrameSource) -> FrameCodec {
    switch source {
    case .camera, .screen: .vp8
    case .microphone, .screenAudio: .opus
    case .data: .data
    }
  }

  @Test("Frame format: keys, key ids, clear bytes and ciphertext as a second implementation computes them")
  func golden() throws {
    #expect(Self.cases.count == 11)
    for item in Self.cases {
      let key = try CallKey(hex(item.key).span)
      #expect(key.keyIdentifier == item.key_identifier)
      let identity = try ParticipantIdentity(item.identity)
      let base = try key.senderBaseKey(room: item.room, identity: identity)
      #expect(Hex.encode([UInt8](base.span)) == item.base_key)
      let keyID = CallKeyID(context: item.context, keyIdentifier: item.key_identifier).rawValue
      #expect(keyID == item.kid)
      let derived = SFrameKey(suite: .aes256GCM, keyID: keyID, baseKey: base.span)
      #expect(Hex.encode([UInt8](derived.key.span)) == item.frame_key)
      #expect(Hex.encode([UInt8](derived.salt.span)) == item.salt)

      let source = try #require(FrameSource(rawValue: item.source))
      let sealer = try SFrameSealer(
        suite: .aes256GCM, keyID: keyID, baseKey: base.span, limits: .standard, firstCounter: item.counter)
      var frames = FrameSealer(sealer: sealer, source: source, codec: Self.codec(source))
      let sealed = try [UInt8](capacity: 300) { output throws(SealError) in
        try frames.seal(hex(item.frame).span, into: &output)
      }
      #expect(Hex.encode(sealed) == item.sealed)

      var opener = try FrameOpener(
        keyID: keyID, baseKey: base.span, source: source, codec: Self.codec(source))
      var bytes = sealed
      var span = bytes.mutableSpan
      let opened = try opener.open(in: &span, frame: 0..<sealed.count)
      #expect(Hex.encode(Array(bytes[opened])) == item.frame)
    }
  }

  @Test(
    "Frame format: an identity is split at its first #",
    arguments: [
      ("ada", "ada", ""), ("ada#phone", "ada", "phone"), ("ada#phone#2", "ada", "phone#2"), ("#x", "", "x"),
      ("ada#", "ada", ""),
    ])
  func identity(_ text: String, user: String, device: String) throws {
    let identity = try ParticipantIdentity(text)
    #expect(identity.user == user)
    #expect(identity.device == device)
  }

  @Test("Frame format: an empty identity or room, and one above 65,535 bytes, is refused")
  func names() throws {
    #expect(throws: FrameKeyError.invalidName(byteCount: 0)) { try ParticipantIdentity("") }
    let long = String(repeating: "x", count: 65_536)
    #expect(throws: FrameKeyError.invalidName(byteCount: 65_536)) { try ParticipantIdentity(long) }
    #expect(throws: FrameKeyError.invalidName(byteCount: 0)) { try Peer("ada", room: "") }
    #expect(throws: FrameKeyError.invalidName(byteCount: 65_536)) { try Peer("ada", room: long) }
  }
}
