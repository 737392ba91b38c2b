import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeMLS

@Suite("RFC 9420 §17.1: every cipher suite")
struct SuiteTests {
  @Test(
    "A group lives in every suite: add, update, remove, talk, export",
    arguments: [1, 2, 3, 4, 5, 6, 7].map(CipherSuite.init(rawValue:)))
  func life(suite: CipherSuite) throws {
    var group = try TestGroup(3, suite: suite)
    try group.update(by: 2)
    try group.add(2, by: 1)
    try group.update(by: 0)
    try group.remove([1], by: 3)
    try group.checkAgreement()
    try group.checkPrivateKeys()
    #expect(group.members[0].group.context.cipherSuite == suite)
    let longest = 255 * group.members[0].client.crypto.hashByteCount
    let exported = try group.members[0].group.exportSecret(label: "x", context: [], length: longest)
    #expect(exported.byteCount == longest)
    #expect(throws: MLSError.state(.exportTooLong)) {
      _ = try group.members[0].group.exportSecret(label: "x", context: [], length: longest + 1)
    }
  }

  @Test(
    "A client keeps its signing key between runs",
    arguments: [1, 2, 4, 5, 7].map(CipherSuite.init(rawValue:)))
  func storedKey(suite: CipherSuite) throws {
    var random = RandomSource(seed: 3)
    let scheme = try SuiteCrypto(suite).signatures
    let key = SignatureScheme.PrivateKey(scheme, using: &random)
    let client = try MLSClient(
      cipherSuite: suite, credential: .basic(identity: [1]), signaturePrivateKey: key.rawRepresentation)
    #expect(client.signaturePublicKey == key.publicKey)
    #expect(throws: MLSError.self) {
      _ = try MLSClient(
        cipherSuite: suite, credential: .basic(identity: [1]),
        signaturePrivateKey: SymmetricKey(copying: [1, 2, 3]))
    }
  }
}
