import PalbeCrypto
import PalbeSRTP
import PalbeUnits
import PalbeWire
import Testing

@Suite("SRTP vectors")
struct VectorTests {
  @Test("RFC 3711 B.3: session keys from a master key")
  func derivation() throws {
    let keys = try SessionKeys(
      profile: .aes128CMSHA1_80, masterKey: hex("e1f97a0d3e018be0d64fa32c06de4139").span,
      masterSalt: hex("0ec675ad498afeebb6960b3aabe6").span, isControl: false)
    #expect([UInt8](keys.encryption.span) == hex("c61e7a93744f39ee10734afe3ff7a087"))
    #expect([UInt8](keys.salt.span) == hex("30cbbc08863d8c85d49db34a9ae1"))
    #expect([UInt8](keys.authentication.span) == hex("cebe321f6ff7716b6fd4ab49af256a156d38baa4"))
  }

  /// A cipher with the session keys of RFC 7714's examples.
  func cipher(
    _ profile: SRTPProfile, _ direction: AEADContext.Direction
  ) throws(SRTPError) -> PacketCipher {
    let key = [UInt8](0..<UInt8(profile.masterKeyByteCount))
    return try PacketCipher(
      SessionKeys(
        encryption: SymmetricKey(copying: key), authentication: SymmetricKey(copying: []),
        salt: SymmetricKey(copying: hex("517569642070726f2071756f"))),
      profile: profile, direction: direction)
  }

  func session(_ profile: SRTPProfile) throws(SRTPError) -> SRTPSession {
    SRTPSession(
      profile: profile, sendRTP: try cipher(profile, .seal), sendRTCP: try cipher(profile, .seal),
      receiveRTP: try cipher(profile, .open), receiveRTCP: try cipher(profile, .open), inboundLimit: 4)
  }

  static let plain = hex(
    """
    8040f17b 8041f8d3 5501a0b2 47616c6c 69612065 7374206f 6d6e6973 20646976 69736120 696e2070 61727465 73207472
    6573
    """)

  @Test(
    "RFC 7714 §16: a protected packet, both key lengths",
    arguments: [
      (
        SRTPProfile.aeadAES128GCM,
        """
        8040f17b 8041f8d3 5501a0b2 f24de3a3 fb34de6c acba861c 9d7e4bca be633bd5 0d294e6f 42a5f47a 51c7d19b 36de3adf
        8833899d 7f27beb1 6a9152cf 765ee439 0cce
        """
      ),
      (
        .aeadAES256GCM,
        """
        8040f17b 8041f8d3 5501a0b2 32b1de78 a822fe12 ef9f78fa 332e33aa b1801238 9a58e2f3 b50b2a02 76ffae0f 1ba63799
        b87b7aa3 db36dfff d6b0f9bb 7878d7a7 6c13
        """
      ),
    ])
  func protectedPacket(_ profile: SRTPProfile, _ expected: String) throws {
    var session = try session(profile)
    let protected = try run(.protectRTP, Self.plain, in: &session)
    #expect(Hex.encode(protected) == Hex.encode(hex(expected)))
    #expect(try run(.unprotectRTP, hex(expected), in: &session) == Self.plain)
  }

  @Test("RFC 7714 §17: a protected RTCP packet with index 0x5d4")
  func protectedControlPacket() throws {
    let plain =
      hex("81c8000d 4d617273 4e545031 4e545032 52545020 0000042a 0000e930 4c756e61")
      + hex("deadbeef deadbeef deadbeef deadbeef deadbeef")
    let expected = hex(
      """
      81c8000d 4d617273 63e94885 dcdab67c a727d766 2f6b7e99 7ff5c0f7 6c06f32d c676a5f1 730d6fda 4ce09b46 86303ded
      0bb9275b c84aa458 96cf4d2f c5abf872 45d9eade 800005d4
      """)
    var session = try session(.aeadAES128GCM)
    #expect(try run(.unprotectRTCP, expected, in: &session) == plain)
    for _ in 0..<0x5d4 { _ = try run(.protectRTCP, plain, in: &session) }
    #expect(Hex.encode(try run(.protectRTCP, plain, in: &session)) == Hex.encode(expected))
  }
}
