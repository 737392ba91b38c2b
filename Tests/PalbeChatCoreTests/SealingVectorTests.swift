import PalbeChatCore
import PalbeCrypto
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@Suite("Sealing's golden vectors") struct SealingVectorTests {
  static func load<T: Decodable>(_ name: String) throws -> T {
    try Vectors.goldenJSON("Tests/PalbeChatCoreTests/Vectors/\(name).json")
  }

  static func bytes(_ text: String) throws -> [UInt8] { try #require(Hex.decode(text)) }

  struct Attachment: Decodable {
    let seed: UInt64
    let blob, plain_sha256, key, prefix, cipher_sha256: String
    let ciphertext: String?
    let plain_bytes, segments: Int
    let cipher_bytes: Int64
  }

  @Test("S0-45 S0-46 attachments are sealed as a second implementation seals them")
  func attachments() throws {
    let vectors: [Attachment] = try Self.load("attachments")
    #expect(vectors.count == 8)
    for item in vectors {
      let file = (0..<item.plain_bytes).map { UInt8(($0 * 7 + Int(item.seed)) % 251) }
      #expect(Hex.encode(SHA256.hash(file)) == item.plain_sha256)
      let blob = try #require(BlobID(bytes: Self.bytes(item.blob)))
      var random = RandomSource(seed: item.seed)
      let (ciphertext, sealed) = try AttachmentCipher.seal(file.span, blob: blob, using: &random)
      #expect(Hex.encode([UInt8](sealed.key.copy().span)) == item.key)
      #expect(Hex.encode(Array(ciphertext.prefix(8))) == item.prefix)
      #expect(sealed.layout.segmentCount == item.segments)
      #expect(sealed.layout.cipherByteCount == item.cipher_bytes)
      #expect(Hex.encode(sealed.cipherHash) == item.cipher_sha256)
      if let whole = item.ciphertext { #expect(Hex.encode(ciphertext) == whole) }
      let descriptor = sealed.descriptor(kind: .file, filename: "", mimeType: "")
      #expect(try AttachmentCipher.open(ciphertext.span, descriptor) == file)
    }
  }

  struct Profile: Decodable {
    let name, secret, group, sealed: String
    let seed, epoch: UInt64
    let fields: [String: String]
  }

  @Test("S0-30 profiles are sealed as a second implementation seals them")
  func profiles() throws {
    let vectors: [Profile] = try Self.load("profiles")
    #expect(vectors.count == 4)
    for item in vectors {
      let secret = SymmetricKey(copying: try Self.bytes(item.secret))
      let (group, sealed) = (try Self.bytes(item.group), try Self.bytes(item.sealed))
      let profile = try SealedProfile.open(sealed.span, secret: secret, group: group, epoch: item.epoch)
      #expect(profile.described == item.fields, "\(item.name)")
      var random = RandomSource(seed: item.seed)
      let again = try SealedProfile.seal(
        profile, secret: secret, group: group, epoch: item.epoch, using: &random)
      #expect(again == sealed, "\(item.name)")
    }
  }

  struct Numbers: Decodable {
    struct Device: Decodable { let device, key: String }
    let local, remote, local_material, local_hash, remote_hash, number, code: String
    let local_devices, remote_devices: [Device]
  }

  @Test("S0-108 S0-110 safety numbers are those that a second implementation computes")
  func safetyNumbers() throws {
    let vectors: [Numbers] = try Self.load("safety-numbers")
    #expect(vectors.count == 5)
    func devices(_ devices: [Numbers.Device]) throws -> [DeviceMaterial] {
      try devices.map {
        DeviceMaterial(device: try #require(DeviceID($0.device)), signatureKey: try Self.bytes($0.key))
      }
    }
    for item in vectors {
      let (local, remote) = (try devices(item.local_devices), try devices(item.remote_devices))
      #expect(Hex.encode(SafetyNumber.identityMaterial(local)) == item.local_material)
      let result = SafetyNumber.result(
        local: try #require(UserID(item.local)), localDevices: local,
        remote: try #require(UserID(item.remote)),
        remoteDevices: remote)
      #expect(result.safetyNumber == item.number)
      #expect(Hex.encode(result.localDeviceSetHash) == item.local_hash)
      #expect(Hex.encode(result.peerDeviceSetHash) == item.remote_hash)
      #expect(Hex.encode(result.qrPayload) == item.code)
    }
  }
}
