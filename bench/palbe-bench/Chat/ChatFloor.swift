import Palbase
import PalbeBackendKit
import PalbeBackendServer
import PalbeMLS
import PalbeMLSMessages
import PalbeMessaging
import PalbeUnits

/// What cannot be left out of a message's way: each durable transaction alone, with the stores and settings of ours and the same
/// bytes, and the operation of MLS. Microseconds, the middle of many.
enum ChatFloor {
  /// One durable transaction of a device that writes what a message writes.
  /// - Parameter shape: what ours wrote for `messages` messages; records of the same number and size in one transaction each.
  static func device(_ shape: StorageTally, messages: Int, in folder: BenchFolder, count: Int) throws
    -> Double
  {
    let random = RandomSource(seed: 11)
    let path = folder.file("floor-device")
    let vault = try FileKeyVault(folder: path + "/vault", passphrase: nil, random: random)
    var ids = random
    let user = UserID(at: WallTime(microseconds: 0), using: &ids)
    let storage = try SealedStorage(
      folder: path + "/store", user: user, vault: vault, opening: .creating, random: random)
    defer { storage.close() }
    let records = max(1, shape.writes / max(1, messages))
    let size = max(1, shape.writtenByteCount / max(1, shape.writes))
    var times: [Double] = []
    for round in 0..<count {
      var transaction = MLSTransaction()
      for index in 0..<records {
        // One is new, like a message; the others replace what was there, like a ratchet.
        let name = index == 0 ? Array("row \(round)".utf8) : Array("state \(index)".utf8)
        let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: round), count: size)
        transaction.write(MLSRecord(copying: bytes.span), MLSRecordKey(group: [1, 2, 3], name: name))
      }
      let start = nanoseconds()
      try storage.apply(transaction)
      times.append(Double(nanoseconds() - start) / 1_000)
    }
    return Percentiles(times).p50
  }

  /// The server's transaction for a message to one other device.
  static func server(in folder: BenchFolder, byteCount: Int, count: Int) throws -> Double {
    let before = try BenchWorld(path: folder.file("floor-server"))
    try before.enrol(2)
    try before.found(before.devices)
    before.loop.stop()
    let floor = try ServerFloor(path: folder.file("floor-server"), world: before)
    var random = RandomSource(seed: 3)
    var times: [Double] = []
    for _ in 0..<count {
      let blob = Wire.application(before.groups[0].mlsID, 1, random.bytes(byteCount))
      times.append(try floor.send([(id: random.bytes(16), blob: blob)], width: 1) * 1e6)
    }
    return Percentiles(times).p50
  }

  /// To seal, and to open, a message in a group of two.
  static func message(byteCount: Int, count: Int) -> (seal: Double, open: Double) {
    var maker = MemberMaker(seed: 5)
    let sender = Owner(maker.create(maker.client()))
    let joiner = maker.joiners(1)[0]
    let welcome = must {
      try sender.group.add([joiner.keyPackage.keyPackage], at: noon, using: &maker.random)
    }
    must { _ = try sender.group.mergePendingCommit(at: noon) }
    let receiver = Owner(maker.join(welcome.welcome!.encoded(), joiner))
    let data = [UInt8](repeating: 0x5a, count: byteCount)
    var times: (seal: [Double], open: [Double]) = ([], [])
    for _ in 0..<count {
      var start = nanoseconds()
      let message = must { try sender.group.encrypt(data, using: &maker.random).encoded() }
      times.seal.append(Double(nanoseconds() - start) / 1_000)
      start = nanoseconds()
      must { _ = try receiver.group.process(message, at: noon) }
      times.open.append(Double(nanoseconds() - start) / 1_000)
    }
    return (Percentiles(times.seal).p50, Percentiles(times.open).p50)
  }

  /// Milliseconds of MLS to found a group: its creation, and the commit that adds the others.
  static func founding(_ members: Int) -> Double {
    var maker = MemberMaker(seed: 9)
    let founder = maker.client()
    let packages = maker.joiners(members - 1).map(\.keyPackage.keyPackage)
    var best = Double.infinity
    for _ in 0..<3 {
      let start = nanoseconds()
      let owner = Owner(maker.create(founder))
      must {
        _ = try owner.group.add(packages, at: noon, using: &maker.random)
        _ = try owner.group.mergePendingCommit(at: noon)
      }
      best = min(best, Double(nanoseconds() - start) / 1e6)
    }
    return best
  }
}

extension ChatFloor {
  /// A short text is padded to this before it is sealed.
  static let plainByteCount = 256
  /// And is so long at the server.
  static let sealedByteCount = 420
}
