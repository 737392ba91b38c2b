import CPalbeLinux
import CPalbeMallocCounter
import Glibc

/// Another thread of this process: what it costs, and where it runs.
struct ThreadProbe {
  let thread: Int32

  /// The newest thread of that name; nil when there is none.
  init?(name: String) {
    var found: Int32?
    guard let folder = opendir("/proc/self/task") else { return nil }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
      let text = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard let thread = Int32(text), Self.name(of: thread) == name else { continue }
      found = max(found ?? 0, thread)
    }
    guard let found else { return nil }
    thread = found
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

  func pin(to processor: Int32) { _ = palbe_pin_thread(thread, processor) }
}
