/// A WAV file made by hand, with everything that can be wrong about one.
struct WAVFixture {
  var riff = "RIFF"
  var wave = "WAVE"
  var format = 1
  var channels = 1
  var rate = 48_000
  var bits = 16
  var align: Int?
  var isExtensible = false
  var before: [UInt8] = []
  var formatChunk = true
  var dataChunk = true
  var data: [UInt8] = [1, 0, 2, 0, 3, 0, 0xff, 0xff]
  var claimed: Int?

  static func little(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  var bytes: [UInt8] {
    var fields = [UInt8]()
    fields += Self.little(isExtensible ? 0xfffe : format, 2) + Self.little(channels, 2) + Self.little(rate, 4)
    fields += Self.little(rate * channels * bits / 8, 4)
    fields += Self.little(align ?? channels * bits / 8, 2) + Self.little(bits, 2)
    if isExtensible {
      fields += Self.little(22, 2) + Self.little(16, 2) + Self.little(3, 4) + Self.little(format, 2)
      fields += [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71]
    }
    var body = Array(wave.utf8) + before
    if formatChunk { body += Array("fmt ".utf8) + Self.little(fields.count, 4) + fields }
    if dataChunk { body += Array("data".utf8) + Self.little(claimed ?? data.count, 4) + data }
    return Array(riff.utf8) + Self.little(body.count, 4) + body
  }
}
