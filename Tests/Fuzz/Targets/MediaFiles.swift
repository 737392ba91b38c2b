import PalbeMediaFiles
import PalbeUnits

extension FuzzTarget {
  /// What opens must play for two loops; its header must say what is inside the file.
  static let wav = FuzzTarget(name: "wav") { bytes in
    guard let reader = try? WAVReader(bytes: bytes, name: "fuzz") else { return }
    precondition(reader.header.data.upperBound <= bytes.count && reader.header.frameCount > 0)
    let frames = reader.header.frameCount
    guard var player = try? MonoWAVReader(bytes: bytes, name: "fuzz") else { return }
    var frame = [Int16](repeating: 0, count: 960)
    for _ in 0..<min(50, frames / 80 + 2) { try? player.read(into: &frame) }
  }

  /// What opens must give as many pictures as it counted, and its first line must parse again as we would
  /// write it.
  static let y4m = FuzzTarget(name: "y4m") { bytes in
    guard var reader = try? Y4MReader(bytes: bytes, name: "fuzz") else { return }
    let line = String(reader.header.line.dropLast())
    precondition((try? Y4MHeader.parse(line)) == reader.header, "the header does not round-trip")
    var picture = I420Image(width: 2, height: 2)
    var pictures = 0
    while (try? reader.read(into: &picture)) == true { pictures += 1 }
    precondition(pictures == reader.pictureCount)
  }
}
