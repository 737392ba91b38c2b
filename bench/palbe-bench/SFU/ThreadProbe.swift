import CPalbeLinux
import CPalbeMallocCounter
import Glibc

/// Another thread of this process: what it costs, and where it runs.
struct ThreadProbe {
  let thread: Int32

  /// The newest thread of that name. A thread names itself after it was started, so this waits up to 5 s for it.
  ///
  /// - Throws: `Missing` when there is none then.
  init(name: String) throws {
    for _ in 0..<5_000 {
      if let found = Self.newest(named: name) {
        thread = found
        return
      }
      usleep(1_000)
    }
    throw Missing(name: name)
  }

  struct Missing: Error, CustomStringConvertible {
    var name: String
    var description: String { "no thread of this process is called \(name)" }
  }

  private static func newest(named name: String) -> Int32? {
    var found: Int32?
    guard let folder = opendir("/proc/self/task") else { return nil }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
      let text = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard let thread = Int32(text), self.name(of: thread) == name else { continue }
      found = max(found ?? 0, thread)
    }
    return found
  }

  private static func name(of thread: Int32) -> String {
    guard let file = fopen("/proc/self/task/\(thread)/comm", "r") else { return "" }
    defer { fclose(file) }
    var text = [CChar](repeating: 0, count: 32)
    guard fgets(&text, 32, file) != nil else { return "" }
    return String(decoding: text.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Time it spent on a processor.
  var processorNanoseconds: UInt64 {
    var time = timespec()
    clock_gettime(palbe_thread_clock(thread), &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  var mallocs: UInt64 { palbe_malloc_count_of(thread) }
  var liveByteCount: Int { Int(palbe_malloc_live_of(thread)) }

  /// Waits until the thread has made what it begins with, which belongs to nobody who joins later; 2 s at most.
  func settle() {
    var last = -1
    for _ in 0..<40 where last != liveByteCount {
      last = liveByteCount
      usleep(50_000)
    }
  }

  func pin(to processor: Int32) { _ = palbe_pin_thread(thread, processor) }
}
