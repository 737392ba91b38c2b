import PalbeBackendCore
import PalbeBackendKit
import PalbeUnits

@testable import PalbeBackendServer

/// A life that leaves rows of every kind in a database file, and those who lived it.
struct StoredLife {
  let (anna, ben, carl): (Caller, Caller, Caller)
  /// Of anna and ben, founded a second time; and carl's with anna.
  let (group, direct): (GroupID, GroupID)
  let (groupMLSID, directMLSID): (MLSGroupID, MLSGroupID)
  /// Anna's, complete.
  let blob: BlobID
  /// When it ended.
  let end: ServerTime
  static let key = IdempotencyKey(key: [1], digest: [1])

  /// Lives it in a new file.
  init(in path: String) throws {
    let rig = try Rig(try SQLiteBackendStore(path: path))
    (anna, ben, carl) = (try rig.enrol(), try rig.enrol(packages: 1), try rig.enrol())
    group = try rig.found(by: anna, with: [ben.user])
    for _ in 0..<3 { try rig.send(group, anna) }
    try rig.drain(ben)
    try rig.ask(.markRead(group, 3), ben)
    try rig.ask(.commit(group, try rig.bundle(group, by: ben, adding: [carl.user])), ben)
    try rig.ask(.setPushToken(PushToken(platform: .ios, bytes: [1])), ben)
    guard case .blob(let view) = try rig.ask(.createBlob(group, byteCount: 3), anna, key: Self.key) else {
      throw Rig<SQLiteBackendStore>.Unexpected()
    }
    blob = view.id
    try rig.ask(.completeBlob(blob), anna)
    direct = try rig.found(by: carl, with: [anna.user], kind: .direct(anna.user))
    try rig.send(direct, carl)
    try rig.ask(.leave(group), carl)
    try rig.ask(.commit(group, try rig.bundle(group, by: ben)), ben)
    var founding = try rig.founding(by: anna, with: [ben.user])
    founding.commit?.delta.addedUsers = []
    try rig.ask(.reset(group, generation: 0, founding), anna)
    try rig.send(direct, anna)
    groupMLSID = try rig.view(group, anna).summary.mlsID
    directMLSID = try rig.view(direct, anna).summary.mlsID
    end = rig.now
  }
}
