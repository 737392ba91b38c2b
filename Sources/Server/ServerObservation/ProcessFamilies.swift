import Glibc

extension Exposition {
  /// What Prometheus' own clients tell of a process.
  ///
  /// - Parameter startedAt: in seconds since 1970.
  public mutating func addProcess(startedAt: Int64) {
    family("process_start_time_seconds", .gauge, "When the process started, since 1970.") {
      $0.sample(value: startedAt)
    }
    var usage = rusage()
    if getrusage(RUSAGE_SELF.rawValue, &usage) == 0 {
      let microseconds =
        (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1_000_000 + usage.ru_utime.tv_usec
        + usage.ru_stime.tv_usec
      family("process_cpu_seconds_total", .counter, "Processor time, user and system.") {
        $0.sample(value: Double(microseconds) / 1e6)
      }
    }
    if let pages = Self.residentPages() {
      family("process_resident_memory_bytes", .gauge, "Memory in use.") {
        $0.sample(value: pages * sysconf(Int32(_SC_PAGESIZE)))
      }
    }
    if let count = Self.openDescriptorCount() {
      family("process_open_fds", .gauge, "Open file descriptors.") { $0.sample(value: count) }
    }
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      family("process_max_fds", .gauge, "Open file descriptors that there may be.") {
        $0.sample(value: UInt64(limit.rlim_cur))
      }
    }
  }

  /// proc(5): the second number of `statm`.
  private static func residentPages() -> Int? {
    guard let file = fopen("/proc/self/statm", "r") else { return nil }
    defer { fclose(file) }
    var buffer = [CChar](repeating: 0, count: 256)
    guard fgets(&buffer, 255, file) != nil else { return nil }
    let words = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      .split(separator: " ")
    return words.count > 1 ? Int(words[1]) : nil
  }

  private static func openDescriptorCount() -> Int? {
    guard let folder = opendir("/proc/self/fd") else { return nil }
    defer { closedir(folder) }
    var count = 0
    while readdir(folder) != nil { count += 1 }
    // "." and "..", and the folder's own.
    return max(0, count - 3)
  }
}
