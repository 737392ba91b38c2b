/// Looks for what senders encoded in what a server saw.
///
/// Every 16-byte window of a sender's encoded frame, past the frame's clear bytes, is a needle. A haystack is what the SFU
/// received, or its memory. Windows with fewer than eight distinct byte values are left out: runs of padding occur by
/// themselves everywhere and would accuse an honest server.
struct PlaintextScanner {
  /// Bytes of one needle.
  static let windowByteCount = 16

  private var keys: [UInt64]
  private var frames: [Int32]
  private var filter: [UInt64]
  private let mask: Int
  private let filterMask: UInt64
  private var found: [Bool]
  private var windowsPerFrame: [Int32]
  /// Windows that are needles.
  private(set) var windowCount = 0

  /// - Parameter frames: each frame's bytes past its clear part.
  init(frames encoded: [ArraySlice<UInt8>]) {
    let windows = encoded.reduce(0) { $0 + max(0, $1.count - Self.windowByteCount + 1) }
    var capacity = 1024
    while capacity < windows * 2 { capacity *= 2 }
    mask = capacity - 1
    keys = Array(repeating: 0, count: capacity)
    frames = Array(repeating: -1, count: capacity)
    filterMask = UInt64(capacity * 8 - 1)
    filter = Array(repeating: 0, count: capacity * 8 / 64)
    found = Array(repeating: false, count: encoded.count)
    windowsPerFrame = Array(repeating: 0, count: encoded.count)
    for (index, frame) in encoded.enumerated() { add(frame, index: Int32(index)) }
  }

  private mutating func add(_ frame: ArraySlice<UInt8>, index: Int32) {
    frame.withUnsafeBytes { bytes in
      guard bytes.count >= Self.windowByteCount else { return }
      for offset in 0...(bytes.count - Self.windowByteCount) {
        let window = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + Self.windowByteCount])
        guard Self.isTelling(window) else { continue }
        insert(Self.key(window.baseAddress!), frame: index)
        windowsPerFrame[Int(index)] += 1
        windowCount += 1
      }
    }
  }

  private static func isTelling(_ window: UnsafeRawBufferPointer) -> Bool {
    var seen: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    for byte in window {
      let bit = UInt64(1) << UInt64(byte & 63)
      switch byte >> 6 {
      case 0: seen.0 |= bit
      case 1: seen.1 |= bit
      case 2: seen.2 |= bit
      default: seen.3 |= bit
      }
    }
    return seen.0.nonzeroBitCount + seen.1.nonzeroBitCount + seen.2.nonzeroBitCount + seen.3.nonzeroBitCount
      >= 8
  }

  /// Sixteen bytes folded into a well-mixed key; two windows share one by chance once in 2^64.
  private static func key(_ pointer: UnsafeRawPointer) -> UInt64 {
    let low = pointer.loadUnaligned(as: UInt64.self)
    let high = pointer.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
    let (top, bottom) = (low ^ 0x9e37_79b9_7f4a_7c15).multipliedFullWidth(by: high ^ 0xd1b5_4a32_d192_ed03)
    let mixed = (top ^ bottom) &* 0x2545_f491_4f6c_dd1d ^ high.byteSwapped
    return mixed == 0 ? 1 : mixed
  }

  private mutating func insert(_ key: UInt64, frame: Int32) {
    filter[Int((key & filterMask) >> 6)] |= 1 << (key & 63)
    var slot = Int(truncatingIfNeeded: key >> 20) & mask
    while keys[slot] != 0, keys[slot] != key { slot = (slot + 1) & mask }
    if keys[slot] == 0 {
      keys[slot] = key
      frames[slot] = frame
    }
  }

  /// Marks every frame of which a window occurs in `haystack`; returns how many windows occurred.
  mutating func scan(_ haystack: UnsafeRawBufferPointer) -> Int {
    guard haystack.count >= Self.windowByteCount, let base = haystack.baseAddress else { return 0 }
    var hits = 0
    for offset in 0...(haystack.count - Self.windowByteCount) {
      let key = Self.key(base + offset)
      guard filter[Int((key & filterMask) >> 6)] & (1 << (key & 63)) != 0 else { continue }
      var slot = Int(truncatingIfNeeded: key >> 20) & mask
      while keys[slot] != 0 {
        if keys[slot] == key {
          hits += 1
          found[Int(frames[slot])] = true
          break
        }
        slot = (slot + 1) & mask
      }
    }
    return hits
  }

  /// Frames that have at least one needle.
  var searchableFrameCount: Int { windowsPerFrame.count { $0 > 0 } }
  /// Frames of which a window occurred.
  var foundFrameCount: Int { found.count { $0 } }
  /// Share of searchable frames that occurred, 0 to 100.
  var foundPercent: Double {
    searchableFrameCount == 0 ? 0 : 100 * Double(foundFrameCount) / Double(searchableFrameCount)
  }
}
