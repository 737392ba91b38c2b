import Foundation
import PalbeUnits

/// The table at the end of a demo, in plain words.
enum DemoTable {
  /// The lines: what was measured, then each check with `ok` or `FAILED`, then the verdict.
  static func lines(_ measured: DemoMeasurements, checks: [DemoCheck]) -> [String] {
    let names = checks.map(\.name.count).max() ?? 0
    var lines = figures(measured)
    lines += ["", "Checks"]
    for check in checks {
      let mark = check.holds ? "ok    " : "FAILED"
      let name = check.detail.isEmpty ? check.name : pad(check.name, names) + "  " + check.detail
      lines.append("  \(mark) \(name)")
    }
    let failed = checks.filter { !$0.holds }.map(\.name)
    lines.append("")
    lines.append(
      failed.isEmpty
        ? "PASS: all \(checks.count) checks hold"
        : "FAILED: \(failed.count) of \(checks.count) checks: " + failed.joined(separator: ", "))
    return lines
  }

  private static func figures(_ measured: DemoMeasurements) -> [String] {
    var rows: [(String, String)] = []
    rows.append(("set-up, connect to first picture", setup(measured)))
    for direction in measured.directions { rows += figures(direction) }
    rows.append(
      ("one-way latency, both", "\(latency(measured.latencies)) (capture to decoded picture)"))
    rows.append(("packets lost", "\(number(measured.lossPercent, 2)) %"))
    rows.append(
      (
        "tone, signal to noise",
        measured.toneSNR.map {
          "\(number($0, 1)) dB, whole call \(measured.toneMeanSNR.map { number($0, 1) } ?? "unknown") dB"
        } ?? "no tone heard"
      ))
    rows.append(("end-to-end encryption", encryption(measured)))
    rows.append(
      (
        "somebody with a wrong key",
        "got \(measured.wrongKey.packets) packets, decoded \(measured.wrongKey.decodedFrames) frames, "
          + "heard \(DemoChecks.decibels(measured.wrongKey.peak))"
      ))
    rows.append(("what the SFU saw", search(measured.audit)))
    rows.append(("the same without encryption", search(measured.control)))
    let width = rows.map(\.0.count).max() ?? 0
    return ["Measured over \(number(measured.seconds, 1)) s"] + rows.map { "  \(pad($0.0, width))  \($0.1)" }
  }

  private static func figures(_ direction: DirectionMeasurement) -> [(String, String)] {
    let video = direction.video
    let route = "\(direction.from) to \(direction.to)"
    let similarity = Percentile.mean(video.ssim).map { number($0, 3) } ?? "unknown"
    return [
      (
        "\(route), pictures",
        "\(video.captured) captured, \(video.decoded) decoded, \(video.captured - video.decoded) dropped, "
          + "SSIM \(similarity)"
      ),
      (
        "\(route), network",
        "\(number(direction.bitrate, 0)) kbit/s, \(direction.lostPackets) of "
          + "\(direction.packets + direction.lostPackets) packets lost, jitter "
          + "\(number(direction.videoJitter.inMilliseconds, 1)) ms video, "
          + "\(number(direction.audioJitter.inMilliseconds, 1)) ms audio"
      ),
      ("\(route), latency", latency(video.latencies)),
      (
        "\(route), sound",
        "\(DemoChecks.decibels(direction.audio.level)), "
          + "\(number(direction.audio.concealedPercent, 2)) % concealed"
      ),
    ]
  }

  private static func setup(_ measured: DemoMeasurements) -> String {
    guard let setup = measured.setup else { return "never" }
    let text = "\(number(setup.inMilliseconds, 0)) ms"
    guard measured.setups.count > 1 else { return text }
    let runs = measured.setups.map { $0.map { number($0.inMilliseconds, 0) } ?? "never" }
    return text + " (median of \(runs.joined(separator: ", ")))"
  }

  private static func latency(_ latencies: [TimeDelta]) -> String {
    guard let middle = Percentile.of(latencies, percent: 50),
      let high = Percentile.of(latencies, percent: 99)
    else { return "unknown" }
    return "\(number(middle.inMilliseconds, 1)) ms p50, \(number(high.inMilliseconds, 1)) ms p99"
  }

  private static func encryption(_ measured: DemoMeasurements) -> String {
    let isOn = !measured.directions.isEmpty && measured.directions.allSatisfy(\.isEncrypted)
    guard isOn else { return "off" }
    return "on, SFrame AES-256-GCM, \(measured.keyEpochs.min() ?? 0) keys from MLS epochs up to "
      + "\(measured.groupEpoch)"
  }

  private static func search(_ audit: AuditMeasurement) -> String {
    "\(number(audit.foundPercent, 1)) % of \(audit.searchedFrames) frames in \(audit.packets) RTP packets, "
      + "\(audit.memoryWindows) pieces in \(audit.memoryBytes >> 20) MiB of memory"
  }

  private static func number(_ value: Double, _ decimals: Int) -> String {
    DemoChecks.fixed(value, decimals)
  }

  private static func pad(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}
