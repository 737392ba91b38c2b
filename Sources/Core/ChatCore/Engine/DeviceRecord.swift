import PalbeMLSMessages
import PalbeUnits
import PalbeWire

/// This device, as the server knows it or will.
struct DeviceRecord: ChatRecord {
  enum Standing: UInt8 {
    /// Made here; the server has not answered yet.
    case new = 1
    case enrolled = 2
    case revoked = 3
  }

  var name: DeviceName
  var standing = Standing.new
  /// When the last-resort key package was made.
  var lastResortAt: WallTime
  /// It was used, and others may have it too: a new one is due.
  var isLastResortUsed = false

  init(name: DeviceName, lastResortAt: WallTime) {
    self.name = name
    self.lastResortAt = lastResortAt
  }

  init(from reader: inout ByteReader) throws(WireError) {
    name = try reader.device()
    standing = try reader.choice("device standing")
    lastResortAt = WallTime(microseconds: try reader.int64())
    isLastResortUsed = try reader.flag()
  }

  func encode(into writer: inout ByteWriter) {
    writer.device(name)
    writer.uint8(standing.rawValue)
    writer.int64(lastResortAt.microseconds)
    writer.flag(isLastResortUsed)
  }
}
