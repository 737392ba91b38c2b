/// Which worker a room lives on: the same for every process and version, so that a log can be followed.
enum RoomPlacement {
  /// FNV-1a, 64 bits.
  static func hash(_ name: String) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return hash
  }

  /// An index below `count`.
  static func worker(of room: String, among count: Int) -> Int { Int(hash(room) % UInt64(max(1, count))) }
}
