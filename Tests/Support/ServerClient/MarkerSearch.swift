import Foundation
import Glibc
import PalbeWire

/// Looks for texts that must not be there, in every form in which they could be: as they are, in hexadecimal, and in base64 of
/// both alphabets at each of its three phases.
public struct MarkerSearch: Sendable {
  public let markers: [String]
  private let forms: [(marker: String, bytes: [UInt8])]

  public init(_ markers: [String]) {
    self.markers = markers
    forms = markers.flatMap { marker -> [(String, [UInt8])] in
      let bytes = Array(marker.utf8)
      var forms = [bytes, Array(Hex.encode(bytes).utf8)]
      for skip in 0..<3 {
        let rest = Array(bytes.dropFirst(skip))
        let whole = Array(rest.prefix(rest.count / 3 * 3))
        for alphabet in [Base64.Alphabet.standard, .url] {
          forms.append(Array(Base64.encode(whole, alphabet: alphabet, padded: false).utf8))
        }
      }
      return forms.map { (marker, $0) }
    }
  }

  /// Those of the markers that are in the bytes. It searches for the first byte, then for all of them: memory is large.
  public func found(in bytes: [UInt8]) -> Set<String> {
    bytes.withUnsafeBufferPointer { haystack in
      var found: Set<String> = []
      for (marker, form) in forms where !found.contains(marker) {
        guard let first = form.first, var place = haystack.baseAddress else { continue }
        let end = place + haystack.count
        while end - place >= form.count, let at = memchr(place, Int32(first), end - place) {
          let start = UnsafePointer(at.assumingMemoryBound(to: UInt8.self))
          guard end - start >= form.count else { break }
          if memcmp(start, form, form.count) == 0 {
            found.insert(marker)
            break
          }
          place = start + 1
        }
      }
      return found
    }
  }

  /// In all memory of a process that it can read or write (proc(5)). Throws where it cannot be read.
  public func found(inMemoryOf process: Int32) throws -> Set<String> {
    let maps = try String(contentsOfFile: "/proc/\(process)/maps", encoding: .utf8)
    let memory = open("/proc/\(process)/mem", O_RDONLY)
    guard memory >= 0 else { throw CocoaError(.fileReadNoPermission) }
    defer { close(memory) }
    var found: Set<String> = []
    var count = 0
    for line in maps.split(separator: "\n") where !line.contains("[vvar") && !line.contains("[vsyscall]") {
      let words = line.split(separator: " ")
      let ends = words[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
      guard words[1].hasPrefix("r"), ends.count == 2 else { continue }
      var offset = ends[0]
      while offset < ends[1] {
        // A marker across two pieces is found in the second.
        let size = Int(min(8 << 20, ends[1] - offset))
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
          filled = max(0, pread(memory, buffer.baseAddress, size, off_t(truncatingIfNeeded: offset)))
        }
        count += bytes.count
        found.formUnion(self.found(in: bytes))
        offset += UInt64(size)
        if offset < ends[1] { offset -= 256 }
      }
    }
    // A process has more than that, or it was not read.
    guard count > 1 << 20 else { throw CocoaError(.fileReadUnknown) }
    return found
  }

  /// In the files of a folder and those below it.
  public func found(below folder: String) throws -> Set<String> {
    guard let files = FileManager.default.enumerator(atPath: folder) else {
      throw CocoaError(.fileNoSuchFile)
    }
    var found: Set<String> = []
    for case let name as String in files {
      guard let data = FileManager.default.contents(atPath: folder + "/" + name), !data.isEmpty else {
        continue
      }
      found.formUnion(self.found(in: [UInt8](data)))
    }
    return found
  }
}
