import PalbeUnits
import PalbeWire

/// The form in which a first answer is kept for repetitions: answers of requests that change something.
extension BackendResponse {
  /// Nil for answers that are not kept: they only read.
  var stored: [UInt8]? {
    var writer = ByteWriter(capacity: 64)
    switch self {
    case .done: writer.uint8(1)
    case .enrolled(let device):
      writer.uint8(2)
      writer.id(device)
    case .keyPackageCount(let count):
      writer.uint8(3)
      writer.uint64(UInt64(count.count))
      writer.uint8(count.hasLastResort ? 1 : 0)
    case .keyPackages(let packages, let missing):
      writer.uint8(4)
      writer.uint32(UInt32(packages.count))
      for package in packages {
        writer.id(package.device)
        writer.uint8(package.isLastResort ? 1 : 0)
        writer.counted(package.blob)
      }
      writer.uint32(UInt32(missing.count))
      for device in missing { writer.id(device) }
    case .founded(let group):
      writer.uint8(5)
      writer.id(group.id)
      writer.counted(group.mlsID.bytes)
      writer.uint64(group.epoch)
      writer.uint64(UInt64(group.headSequence))
      writer.uint8(group.isExisting ? 1 : 0)
    case .committed(let sequence, let epoch):
      writer.uint8(6)
      writer.uint64(UInt64(sequence))
      writer.uint64(epoch)
    case .acknowledged(let count):
      writer.uint8(7)
      writer.uint64(UInt64(count))
    case .blob(let blob):
      writer.uint8(8)
      writer.id(blob.id)
      writer.id(blob.group)
      writer.uint64(UInt64(blob.byteCount))
      writer.uint8(blob.state.rawValue)
      writer.int64(blob.expiresAt.microseconds)
    case .accepted(let sequence, let epoch, let isRepeated):
      writer.uint8(9)
      writer.uint64(UInt64(sequence))
      writer.uint64(epoch)
      writer.uint8(isRepeated ? 1 : 0)
    case .devices, .commsPrefs, .groups, .group, .commits, .queue, .notifyScope, .unread,
      .subscribed:
      return nil
    }
    return writer.bytes
  }

  /// Nil for bytes that `stored` does not make.
  init?(stored bytes: [UInt8]) {
    do throws(WireError) { self = try Self.read(bytes) } catch { return nil }
  }

  private static func read(_ bytes: [UInt8]) throws(WireError) -> BackendResponse {
    var reader = ByteReader(bytes.span)
    let response: BackendResponse
    switch try reader.uint8() {
    case 1: response = .done
    case 2: response = .enrolled(try reader.id())
    case 3:
      response = .keyPackageCount(
        KeyPackageCount(count: Int(clamping: try reader.uint64()), hasLastResort: try reader.uint8() == 1))
    case 4:
      var packages: [ClaimedKeyPackage] = []
      for _ in 0..<(try reader.uint32()) {
        let device: DeviceID = try reader.id()
        let isLastResort = try reader.uint8() == 1
        packages.append(
          ClaimedKeyPackage(device: device, blob: try reader.counted(), isLastResort: isLastResort))
      }
      var missing: [DeviceID] = []
      for _ in 0..<(try reader.uint32()) { missing.append(try reader.id()) }
      response = .keyPackages(packages, missing: missing)
    case 5:
      response = .founded(
        FoundedGroup(
          id: try reader.id(), mlsID: MLSGroupID(try reader.counted()), epoch: try reader.uint64(),
          headSequence: Int64(clamping: try reader.uint64()), isExisting: try reader.uint8() == 1))
    case 6: response = .committed(sequence: Int64(clamping: try reader.uint64()), epoch: try reader.uint64())
    case 7: response = .acknowledged(count: Int(clamping: try reader.uint64()))
    case 8:
      response = .blob(
        BlobView(
          id: try reader.id(), group: try reader.id(), byteCount: Int64(clamping: try reader.uint64()),
          state: try reader.choice("state"),
          expiresAt: WallTime(microseconds: try reader.int64())))
    case 9:
      response = .accepted(
        sequence: Int64(clamping: try reader.uint64()), epoch: try reader.uint64(),
        isRepeated: try reader.uint8() == 1)
    case let kind: throw .invalid(field: "response", value: UInt64(kind))
    }
    try reader.finish()
    return response
  }
}
