import PalbeChatCore
import PalbeCrypto
import PalbeMLS
import PalbeMLSMessages
import PalbeUnits
import PalbeWire
import Testing

@Suite("Sealed group profiles") struct SealedProfileTests {
  let group: [UInt8] = Array(0..<32)
  let secret = [UInt8](repeating: 9, count: 32)

  func seal(_ profile: GroupProfile, _ secret: [UInt8], epoch: UInt64 = 7, seed: UInt64 = 1) throws -> [UInt8]
  {
    var random = RandomSource(seed: seed)
    let key = SymmetricKey(copying: secret)
    return try SealedProfile.seal(profile, secret: key, group: group, epoch: epoch, using: &random)
  }

  func open(
    _ sealed: [UInt8], _ secret: [UInt8], group: [UInt8]? = nil, epoch: UInt64 = 7
  ) throws -> GroupProfile {
    let key = SymmetricKey(copying: secret)
    return try SealedProfile.open(sealed.span, secret: key, group: group ?? self.group, epoch: epoch)
  }

  @Test("S0-30 a profile comes back, of its group and epoch only")
  func roundTrip() throws {
    var samples = Samples(seed: 4)
    for seed in 0..<50 {
      let profile = samples.profile()
      let sealed = try seal(profile, secret, seed: UInt64(seed))
      #expect(try open(sealed, secret) == profile)
      #expect(throws: SealedProfileError.notAuthentic) { try open(sealed, secret, epoch: 8) }
      #expect(throws: SealedProfileError.notAuthentic) { try open(sealed, secret, group: group + [0]) }
    }
  }

  @Test("S0-30 every prefix and every changed byte is refused")
  func truncation() throws {
    let sealed = try seal(GroupProfile(name: "climbers"), secret)
    for count in 0..<sealed.count {
      #expect(throws: SealedProfileError.self) { try open(Array(sealed[..<count]), secret) }
      var changed = sealed
      changed[count] ^= 0x40
      #expect(throws: SealedProfileError.self) { try open(changed, secret) }
    }
    #expect(throws: SealedProfileError.tooLong(limit: 4_096)) {
      try open([UInt8](repeating: 1, count: 4_097), secret)
    }
    #expect(throws: SealedProfileError.format(2)) { try open([UInt8](repeating: 2, count: 40), secret) }
  }

  @Test("2.1 names of up to 200 bytes are sealed to one length, which the server takes")
  func lengths() throws {
    func count(_ profile: GroupProfile) throws -> Int { try seal(profile, secret).count }
    #expect(try count(GroupProfile()) == 1 + 12 + 256 + 16)
    #expect(try count(GroupProfile(name: String(repeating: "n", count: 200))) == 1 + 12 + 256 + 16)
    #expect(try count(GroupProfile(name: String(repeating: "n", count: 256))) <= SealedProfile.byteLimit)
    #expect(throws: SealedProfileError.profile(.limit(field: "name", limit: 256))) {
      try count(GroupProfile(name: String(repeating: "n", count: 257)))
    }
  }

  @Test("S0-30 the members of an epoch open it; who was removed does not; a call's key does not")
  func members() throws {
    let now: UInt64 = 1_800_000_000
    let lifetime = Lifetime(notBefore: now - 3_600, notAfter: now + 86_400)
    var random = RandomSource(seed: 1)
    let alice = try MLSClient(credential: .basic(identity: [1]), using: &random)
    let bob = try MLSClient(credential: .basic(identity: [2]), using: &random)
    let bundle = try bob.makeKeyPackage(lifetime: lifetime, using: &random)
    var alices = try MLSGroup.create(groupID: group, client: alice, lifetime: lifetime, using: &random)
    let added = try alices.add([bundle.keyPackage], at: now, using: &random)
    try alices.mergePendingCommit(at: now)
    var bobs = try MLSGroup.join(try #require(added.welcome), keyPackages: [bundle], client: bob)
    let profile = GroupProfile(name: "climbers", timer: Expiry(seconds: 60))
    let (own, his) = (try bytes(of: profileSecret(of: alices)), try bytes(of: profileSecret(of: bobs)))
    let sealed = try seal(profile, own, epoch: 1)
    #expect(try open(sealed, his, epoch: 1) == profile)
    let call = try bytes(of: bobs.exportSecret(label: "palbe call media key", context: [], length: 32))
    #expect(throws: SealedProfileError.notAuthentic) { try open(sealed, call, epoch: 1) }

    let removal = try alices.remove([bobs.ownLeaf], at: now, using: &random)
    try alices.mergePendingCommit(at: now)
    _ = try bobs.process(removal.commit.encoded(), at: now)
    let later = try seal(profile, try bytes(of: profileSecret(of: alices)), epoch: 2)
    #expect(throws: SealedProfileError.notAuthentic) { try open(later, his, epoch: 2) }
    do throws(MLSError) {
      _ = try profileSecret(of: bobs)
      Issue.record("who was removed has the secret of the next epoch")
    } catch { #expect(error == .state(.removed)) }
  }

  private func profileSecret(of group: borrowing MLSGroup) throws(MLSError) -> SymmetricKey {
    try group.exportSecret(
      label: SealedProfile.exporterLabel, context: [], length: SealedProfile.secretByteCount)
  }

  private func bytes(of secret: consuming SymmetricKey) -> [UInt8] { [UInt8](secret.span) }
}
