import Foundation
import Palbase
import PalbeMLS
import PalbeMessaging
import PalbeSDKKit
import PalbeTestKit
import PalbeUnits
import PalbeWire

/// A device's folder and vault.
struct StorageRig {
  let folder: TemporaryFolder
  let vault = MemoryVault()
  let user = UserID(bytes: [UInt8](1...16))!

  init() throws { folder = try TemporaryFolder() }

  func open(
    _ opening: SealedStorage.Opening = .creating, user: UserID? = nil, seed: UInt64 = 1
  ) throws -> SealedStorage {
    try SealedStorage(
      folder: folder.url.path, user: user ?? self.user, vault: vault, opening: opening,
      random: RandomSource(seed: seed), isDurable: false)
  }
}

extension MLSRecord {
  init(_ bytes: [UInt8]) { self.init(copying: bytes.span) }
  var array: [UInt8] { withSpan { span in [UInt8](span) } }
}

extension MLSStorage {
  func write(_ value: [UInt8], _ key: MLSRecordKey) throws {
    var transaction = MLSTransaction()
    transaction.write(MLSRecord(value), key)
    try apply(transaction)
  }

  /// Everything that is in it.
  func all() throws -> [MLSRecordKey: [UInt8]] {
    var all: [MLSRecordKey: [UInt8]] = [:]
    for group in [nil] + (try groups().map { Optional($0) }) {
      for key in try keys(under: MLSRecordKey(group: group, name: [])) { all[key] = try read(key)?.array }
    }
    return all
  }
}
