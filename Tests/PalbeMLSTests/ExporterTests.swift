import PalbeCrypto
import PalbeMLSMessages
import Testing

@testable import PalbeMLS

@Suite("RFC 9420 §8.5: the exporter")
struct ExporterTests {
  @Test("Wiped explicitly, it answers exporterWiped until the next epoch; everything else goes on")
  func wiped() throws {
    var group = try TestGroup(3)
    let first = group.members[0]
    weak let secret = first.group.epoch.secrets.exporter
    #expect(secret != nil)
    let before = try first.group.exportSecret(label: "call", context: [], length: 32)
    first.group.wipeExporterSecret()
    let isGone = secret == nil
    #expect(isGone, "no copy stays behind")
    let isWiped = first.group.isExporterWiped
    #expect(isWiped)
    for length in [0, 32] {
      #expect(throws: MLSError.state(.exporterWiped)) {
        _ = try first.group.exportSecret(label: "call", context: [], length: length)
      }
    }
    first.group.wipeExporterSecret()
    // Messages and commits do not need it, and the others still export.
    let message = try first.group.encrypt([1], using: &group.random)
    guard case .application = try group.members[1].process(message) else {
      Issue.record("expected application data")
      return
    }
    let theirs = try group.members[1].group.exportSecret(label: "call", context: [], length: 32)
    let same = SymmetricKey.isEqual(before, theirs)
    #expect(same)
    try group.update(by: 0)
    try group.checkAgreement()
    group.members[2].group.wipeExporterSecret()
    try group.update(by: 1)
    try group.checkAgreement()
  }

  @Test("A commit that waits does not keep the wiped secret, and brings its own")
  func pending() throws {
    var group = try TestGroup(2)
    let first = group.members[0]
    weak let secret = first.group.epoch.secrets.exporter
    _ = try first.group.commit(at: noon, using: &group.random)
    first.group.wipeExporterSecret()
    let isGone = secret == nil
    #expect(isGone)
    try first.group.mergePendingCommit(at: noon)
    _ = try first.group.exportSecret(label: "call", context: [], length: 32)
  }
}
