import Glibc
import PalbeUnits
import Testing

@testable import PalbeCallLab

@Suite("The audit of what a server saw")
struct PlaintextScannerTests {
  private func frame(_ count: Int, seed: UInt64) -> [UInt8] {
    var random = RandomSource(seed: seed)
    return random.bytes(count)
  }

  @Test("a window anywhere in the haystack names its frame, other bytes name none")
  func findsWindows() {
    let frames = (0..<20).map { frame(200, seed: UInt64($0)) }
    var scanner = PlaintextScanner(frames: frames.map { $0[...] })
    #expect(scanner.searchableFrameCount == 20)
    var haystack = frame(5_000, seed: 99)
    #expect(haystack.withUnsafeBytes { scanner.scan($0) } == 0)
    #expect(scanner.foundFrameCount == 0)
    haystack.replaceSubrange(1_234..<1_250, with: frames[7][31..<47])
    #expect(haystack.withUnsafeBytes { scanner.scan($0) } == 1)
    #expect(scanner.foundFrameCount == 1)
    #expect(scanner.foundPercent == 5)
  }

  @Test("fifteen bytes are not a window; runs of padding are no needle")
  func leavesOutPadding() {
    let secret = frame(64, seed: 3)
    var scanner = PlaintextScanner(frames: [
      secret[...], [UInt8](repeating: 0, count: 64)[...], secret[..<15],
    ])
    #expect(scanner.searchableFrameCount == 1)
    let haystack = [UInt8](repeating: 0, count: 100) + secret[10..<25] + [UInt8](repeating: 0, count: 100)
    #expect(haystack.withUnsafeBytes { scanner.scan($0) } == 0)
  }

  @Test("a process's own memory holds what it holds")
  func readsMemory() throws {
    let secret = frame(64, seed: 4)
    var scanner = PlaintextScanner(frames: [secret[...]])
    let bytes = try ProcessMemory.scan(processID: getpid(), overlap: 15) { _ = scanner.scan($0) }
    #expect(bytes > 0)
    #expect(scanner.foundFrameCount == 1)
    #expect(secret.count == 64)
  }
}
