import Foundation

/// The packets an SFU wrote to its audit log: each a big-endian 32-bit length and the RTP packet as it was after SRTP.
struct AuditLog {
  /// The packets, in the order they were received.
  private(set) var packets: [ArraySlice<UInt8>] = []

  /// Reads as many whole packets as there are; a record cut off at the end is left out.
  init(contentsOf path: String) throws {
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    var offset = 0
    while offset + 4 <= bytes.count {
      let count = bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
      guard count <= bytes.count - offset - 4 else { break }
      packets.append(bytes[offset + 4..<offset + 4 + count])
      offset += 4 + count
    }
  }

  /// Bytes of all packets together.
  var byteCount: Int { packets.reduce(0) { $0 + $1.count } }
}
