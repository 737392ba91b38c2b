import PalbeWire

/// How a camera was held: what EXIF's tag 0x0112 says is to be done to the pixels (CIPA DC-008 §4.6.4).
enum Orientation: UInt16 {
  case upright = 1
  case mirrored = 2
  case upsideDown = 3
  case mirroredUpsideDown = 4
  case mirroredLeft = 5
  case right = 6
  case mirroredRight = 7
  case left = 8

  /// Width becomes height.
  var swapsSides: Bool { rawValue >= 5 }

  /// Which pixel of a picture of this size stands at a place of the upright one.
  func source(_ x: Int, _ y: Int, width: Int, height: Int) -> (column: Int, row: Int) {
    switch self {
    case .upright: (x, y)
    case .mirrored: (width - 1 - x, y)
    case .upsideDown: (width - 1 - x, height - 1 - y)
    case .mirroredUpsideDown: (x, height - 1 - y)
    case .mirroredLeft: (y, x)
    case .right: (y, height - 1 - x)
    case .mirroredRight: (width - 1 - y, height - 1 - x)
    case .left: (width - 1 - y, x)
    }
  }

  /// As a JPEG or PNG says; upright where it says nothing that makes sense.
  init(file: Span<UInt8>) {
    self = (try? Self.find(in: file)) ?? .upright
  }

  private static func find(in file: Span<UInt8>) throws(WireError) -> Orientation? {
    var reader = ByteReader(file)
    if try reader.uint16() == 0xffd8 {
      // Segments before the first scan.
      while !reader.isAtEnd {
        guard try reader.uint8() == 0xff else { return nil }
        var marker = try reader.uint8()
        while marker == 0xff { marker = try reader.uint8() }
        guard marker != 0xda, marker != 0xd9 else { return nil }
        let length = Int(try reader.uint16())
        guard length >= 2 else { return nil }
        var segment = try reader.reader(length - 2)
        guard marker == 0xe1 else { continue }
        if let magic = try? segment.array(6), magic == Array("Exif\0\0".utf8) {
          return try tiff(segment.span(segment.remaining))
        }
      }
      return nil
    }
    reader = ByteReader(file)
    guard try reader.uint64() == 0x8950_4e47_0d0a_1a0a else { return nil }
    while !reader.isAtEnd {
      let length = try reader.uint32()
      let kind = try reader.uint32()
      guard length <= 1 << 26 else { return nil }
      var chunk = try reader.reader(Int(length))
      try reader.skip(4)
      if kind == 0x6558_4966 { return try tiff(chunk.span(chunk.remaining)) }  // eXIf
      if kind == 0x4945_4e44 { return nil }  // IEND
    }
    return nil
  }

  /// The first directory of EXIF's TIFF.
  private static func tiff(_ bytes: Span<UInt8>) throws(WireError) -> Orientation? {
    var reader = ByteReader(bytes)
    let order = try reader.uint16()
    guard order == 0x4949 || order == 0x4d4d else { return nil }
    let isLittle = order == 0x4949
    func uint16(_ reader: inout ByteReader) throws(WireError) -> UInt16 {
      let value = try reader.uint16()
      return isLittle ? value.byteSwapped : value
    }
    func uint32(_ reader: inout ByteReader) throws(WireError) -> UInt32 {
      let value = try reader.uint32()
      return isLittle ? value.byteSwapped : value
    }
    guard try uint16(&reader) == 42 else { return nil }
    let offset = try uint32(&reader)
    guard offset >= 8, offset < 1 << 20 else { return nil }
    try reader.skip(Int(offset) - 8)
    for _ in 0..<(try uint16(&reader)) {
      let tag = try uint16(&reader)
      let type = try uint16(&reader)
      let count = try uint32(&reader)
      let value = try uint16(&reader)
      try reader.skip(2)
      if tag == 0x0112 { return type == 3 && count == 1 ? Orientation(rawValue: value) : nil }
    }
    return nil
  }
}
