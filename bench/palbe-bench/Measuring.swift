import CPalbeMallocCounter
import Glibc

func nanoseconds() -> UInt64 { read(CLOCK_MONOTONIC) }

/// Time that this thread spent on a processor: what other programs do beside counts as little as possible.
func processorNanoseconds() -> UInt64 { read(CLOCK_THREAD_CPUTIME_ID) }

private func read(_ clock: clockid_t) -> UInt64 {
  var time = timespec()
  clock_gettime(clock, &time)
  return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Memory of this process that lies in RAM; 0 where the system does not tell.
func residentByteCount() -> Int {
  // What was freed counts for nobody.
  palbe_malloc_release()
  guard let file = fopen("/proc/self/statm", "r") else { return 0 }
  defer { fclose(file) }
  var text = [CChar](repeating: 0, count: 128)
  guard fgets(&text, Int32(text.count), file) != nil else { return 0 }
  let line = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  let fields = line.split(separator: " ")
  return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
}

/// What one run of something took.
struct Sample {
  var nanoseconds: UInt64 = 0
  var mallocs: UInt64 = 0

  static func += (sum: inout Sample, more: Sample) {
    sum.nanoseconds += more.nanoseconds
    sum.mallocs += more.mallocs
  }
}

/// Runs `body` and adds what it took to `sample`.
func timed<Result: ~Copyable>(_ sample: inout Sample, _ body: () throws -> Result) rethrows -> Result {
  let mallocs = palbe_malloc_count()
  let began = processorNanoseconds()
  let result = try body()
  let ended = processorNanoseconds()
  sample += Sample(nanoseconds: ended - began, mallocs: palbe_malloc_count() - mallocs)
  return result
}

/// How long and how often to measure.
struct Slicing {
  /// Slices of ours and of the floor, in turns.
  var slices: Int
  /// A slice repeats what is short until it takes this long.
  var sliceNanoseconds: UInt64 = 2_000_000
  /// No more slices start once a measurement took this long, but three there are.
  var limitNanoseconds: UInt64 = 4_000_000_000

  /// Microseconds of ours and of the floor for one run, each the least of all slices, and the mallocs of ours.
  func measure(
    ours: () -> Sample, floor: () -> Sample
  ) -> (us: Double, floorUS: Double, mallocs: Double) {
    let first = ours()
    _ = floor()
    let repeats = Int(sliceNanoseconds / max(first.nanoseconds, 1)) + 1
    var best = (ours: first.nanoseconds * UInt64(repeats), floor: UInt64.max)
    var mallocs = first.mallocs * UInt64(repeats)
    let began = nanoseconds()
    for slice in 0..<slices {
      if slice >= 3 && nanoseconds() - began > limitNanoseconds { break }
      if slice >= 1 && nanoseconds() - began > 3 * limitNanoseconds { break }
      var sum = (ours: Sample(), floor: Sample())
      for _ in 0..<repeats {
        // Neither side always comes first.
        if slice % 2 == 0 { sum.floor += floor() }
        sum.ours += ours()
        if slice % 2 == 1 { sum.floor += floor() }
      }
      best.ours = min(best.ours, sum.ours.nanoseconds)
      best.floor = min(best.floor, sum.floor.nanoseconds)
      mallocs = min(mallocs, sum.ours.mallocs)
    }
    let scale = 1_000 * Double(repeats)
    return (Double(best.ours) / scale, Double(best.floor) / scale, Double(mallocs) / Double(repeats))
  }
}

/// Columns of text. `left` columns keep to the left.
func table(_ head: [String], _ lines: [[String]], left: Set<Int>) -> String {
  let widths = head.indices.map { column in ([head] + lines).map(\.[column].count).max() ?? 0 }
  return ([head] + lines).map { line in
    line.enumerated().map { column, cell in
      let padding = String(repeating: " ", count: widths[column] - cell.count)
      return left.contains(column) ? cell + padding : padding + cell
    }.joined(separator: "  ")
  }.joined(separator: "\n")
}

/// Decimal text without Foundation.
func fixed(_ value: Double, _ digits: Int) -> String {
  var scale = 1.0
  for _ in 0..<digits { scale *= 10 }
  let scaled = Int64((value * scale).rounded())
  guard digits > 0 else { return "\(scaled)" }
  let fraction = "\(scaled % Int64(scale))"
  return "\(scaled / Int64(scale))." + String(repeating: "0", count: digits - fraction.count) + fraction
}
