import Glibc
import PalbeUnits

/// Searches what an SFU saw for what was sent.
///
/// Frames are taken in portions, since every 16-byte window of them is held in a table.
struct SFUSearch {
  /// Bytes of frames in one portion: its table then has 50 MB.
  static let portionByteCount = 2 << 20

  private var scanners: [PlaintextScanner] = []
  private(set) var result = AuditMeasurement()

  /// For these senders' frames. Equal ones, such as of silence, count once: what is found belongs to all of them.
  init(_ frames: [SentRecord.EncodedFrame]) {
    var portion: [ArraySlice<UInt8>] = []
    var byteCount = 0
    var seen = Set<ArraySlice<UInt8>>()
    for frame in frames where seen.insert(frame.secret).inserted {
      portion.append(frame.secret)
      byteCount += frame.secret.count
      if byteCount >= Self.portionByteCount {
        scanners.append(PlaintextScanner(frames: portion))
        (portion, byteCount) = ([], 0)
      }
    }
    if !portion.isEmpty { scanners.append(PlaintextScanner(frames: portion)) }
    result.loggedFrames = frames.count
    result.searchedFrames = scanners.reduce(0) { $0 + $1.searchableFrameCount }
  }

  /// Searches a running process's memory, as the one who seized the server would read it.
  mutating func searchMemory(of process: pid_t) throws {
    // Copies: found frames are counted in packets alone.
    var scanners = scanners
    var windows = 0
    result.memoryBytes = try ProcessMemory.scan(
      processID: process, overlap: PlaintextScanner.windowByteCount - 1
    ) { piece in
      for index in scanners.indices { windows += scanners[index].scan(piece) }
    }
    result.memoryWindows = windows
  }

  /// Searches the packets that the SFU received.
  mutating func searchPackets(_ log: AuditLog) {
    for packet in log.packets {
      packet.withUnsafeBytes { bytes in
        for index in scanners.indices { result.packetWindows += scanners[index].scan(bytes) }
      }
    }
    result.packets = log.packets.count
    result.packetBytes = log.byteCount
    result.foundFrames = scanners.reduce(0) { $0 + $1.foundFrameCount }
  }
}
