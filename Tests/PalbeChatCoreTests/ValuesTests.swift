import PalbeChatCore
import PalbeMLSMessages
import PalbeUnits
import Testing

@Suite struct ValuesTests {
  @Test("S0-91 a device is named by its credential, and by no other kind or length")
  func deviceNames() {
    var random = RandomSource(seed: 1)
    let now = WallTime(microseconds: 1_700_000_000_000_000)
    let name = DeviceName(user: UserID(at: now, using: &random), device: DeviceID(at: now, using: &random))
    #expect(DeviceName(credential: name.credential) == name)
    guard case .basic(let identity) = name.credential else { return }
    #expect(identity.count == 32)
    for count in 0..<32 {
      #expect(DeviceName(credential: .basic(identity: Array(identity[..<count]))) == nil)
    }
    #expect(DeviceName(credential: .basic(identity: identity + [0])) == nil)
    #expect(DeviceName(credential: .x509(certificates: [identity])) == nil)
  }

  @Test("S0-105 the stronger role is the greater")
  func roles() {
    #expect(ChatRole.member < .admin && ChatRole.admin < .owner)
  }
}
