import Palbase
import PalbeMLS
import PalbeMessaging
import PalbeUnits
import PalbeWire

/// Stores states that can be checked from outside: state n is n in a record of each of two groups, and a record of its
/// own for each number from 1 to n; each comes to the medium in two parts of one batch.
struct StorageProbe {
  let storage: SealedStorage

  init(folder: String) throws {
    let random = Timebase.system.randomSource
    storage = try SealedStorage(
      folder: folder + "/messaging", user: UserID(bytes: [UInt8](repeating: 7, count: 16))!,
      vault: FileKeyVault(folder: folder + "/vault", random: random), opening: .creating, random: random)
  }

  /// Stores the next state; its number.
  func step() throws -> UInt32 {
    let next = try number(in: [1]) + 1
    let bytes = (0..<4).map { UInt8(truncatingIfNeeded: next >> (24 - 8 * $0)) }
    var (first, second) = (MLSTransaction(), MLSTransaction())
    first.write(MLSRecord(copying: bytes.span), .application([1], in: [1]))
    second.write(MLSRecord(copying: bytes.span), .application([1], in: [2]))
    let long = [UInt8](repeating: UInt8(truncatingIfNeeded: next), count: 1_500)
    second.write(MLSRecord(copying: long.span), .application([2] + bytes, in: [2]))
    try storage.begin()
    try storage.apply(first)
    try storage.apply(second)
    try storage.commit()
    return next
  }

  private func number(in group: [UInt8]) throws -> UInt32 {
    guard let record = try storage.read(.application([1], in: group)) else { return 0 }
    return record.withSpan { span in [UInt8](span) }.reduce(0) { $0 << 8 | UInt32($1) }
  }
}
