import PalbeChatCore
import PalbeMLS
import PalbeUnits
import PalbeWire

/// The shell's own records, all of the client's, behind the engine's byte for records of the application. They begin with
/// 'S', which nobody else's do.
///
///     S 1 user        whose devices were compared, and what became of them
///     S 2             what the user lets others see, as the server said last
///     S 3             the key of files that wait in the spool
///
/// Each begins with the number of its schema.
enum ShellRecords {
  private static let space = UInt8(ascii: "S")
  static let schema: UInt8 = 1

  static let trust = MLSRecordKey.application([space, 1], in: nil)
  static func trust(_ user: UserID) -> MLSRecordKey { .application([space, 1] + user.bytes, in: nil) }
  static let prefs = MLSRecordKey.application([space, 2], in: nil)
  static let spoolKey = MLSRecordKey.application([space, 3], in: nil)

  static func record(_ body: (inout ByteWriter) -> Void) -> MLSRecord {
    var writer = ByteWriter(capacity: 256)
    writer.uint8(schema)
    body(&writer)
    return MLSRecord(copying: writer.bytes.span)
  }

  /// Decodes all of a record. Throws `newerSchema`, `corrupted`.
  static func decode<Value>(
    _ record: MLSRecord, _ body: (inout ByteReader) throws(WireError) -> Value
  ) throws(MLSStorageError) -> Value {
    try record.withSpan { (bytes) throws(MLSStorageError) in
      var reader = ByteReader(bytes)
      do throws(WireError) {
        let found = try reader.uint8()
        guard found > 0 else { throw .invalid(field: "record schema", value: 0) }
        guard found == schema else { throw .invalid(field: "record schema", value: UInt64(found)) }
        let value = try body(&reader)
        try reader.finish()
        return value
      } catch { throw .corrupted(error) }
    }
  }
}

/// What is remembered of a user whose devices were compared.
struct TrustRecord: Equatable, Sendable {
  /// The devices that were there when this device looked last.
  var known: [PalbeChatCore.DeviceMaterial]
  var trust: StoredTrust

  var record: MLSRecord {
    ShellRecords.record { writer in
      writer.uint32(UInt32(known.count))
      for device in known {
        writer.id(device.device)
        writer.counted(device.signatureKey)
      }
      switch trust {
      case .unverified: writer.uint8(0)
      case .verified(let hash):
        writer.uint8(1)
        writer.counted(hash)
      case .changed(let change):
        writer.uint8(2)
        writer.id(change.user)
        for list in [change.added, change.removed] {
          writer.uint32(UInt32(list.count))
          for device in list { writer.id(device) }
        }
        writer.counted(change.oldHash)
        writer.counted(change.newHash)
        writer.int64(change.at.microseconds)
      }
    }
  }

  init(known: [PalbeChatCore.DeviceMaterial], trust: StoredTrust) {
    (self.known, self.trust) = (known, trust)
  }

  init(_ record: MLSRecord) throws(MLSStorageError) {
    self = try ShellRecords.decode(record) { (reader) throws(WireError) in try Self(from: &reader) }
  }

  private init(from reader: inout ByteReader) throws(WireError) {
    known = []
    for _ in 0..<(try Self.count(&reader)) {
      known.append(PalbeChatCore.DeviceMaterial(device: try reader.id(), signatureKey: try reader.counted()))
    }
    switch try reader.uint8() {
    case 0: trust = .unverified
    case 1: trust = .verified(deviceSetHash: try reader.counted())
    case 2:
      let user: UserID = try reader.id()
      var lists: [[DeviceID]] = []
      for _ in 0..<2 {
        var list: [DeviceID] = []
        for _ in 0..<(try Self.count(&reader)) { list.append(try reader.id()) }
        lists.append(list)
      }
      trust = .changed(
        DeviceSetChange(
          user: user, added: lists[0], removed: lists[1], oldHash: try reader.counted(),
          newHash: try reader.counted(), at: WallTime(microseconds: try reader.int64())))
    case let other: throw .invalid(field: "trust", value: UInt64(other))
    }
  }

  /// Each element takes sixteen bytes at least, so memory is bounded by the record.
  private static func count(_ reader: inout ByteReader) throws(WireError) -> Int {
    let count = Int(try reader.uint32())
    guard count <= reader.remaining / 16 else { throw .truncated(needed: count, have: reader.remaining) }
    return count
  }
}

extension StoredCommsPrefs {
  var record: MLSRecord {
    ShellRecords.record { writer in
      writer.flag(sharePresence)
      writer.flag(shareReceipts)
    }
  }

  init(_ record: MLSRecord) throws(MLSStorageError) {
    self = try ShellRecords.decode(record) { (reader) throws(WireError) in
      StoredCommsPrefs(sharePresence: try reader.flag(), shareReceipts: try reader.flag())
    }
  }
}
