import Foundation
import PalbeUnits

/// The report as JSON. Keys are what programs rely on: change none.
struct DemoReport: Encodable, Equatable {
  /// A number that may be unknown: its key is there all the same, with null.
  struct Figure: Encodable, Equatable {
    var value: Double?
    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      if let value { try container.encode(value) } else { try container.encodeNil() }
    }
  }
  struct Video: Encodable, Equatable {
    var captured: Int
    var decoded: Int
    var ssim: Figure
    var out_of_order: Int
  }
  struct Audio: Encodable, Equatable {
    var snr_db: Figure
    var concealed_percent: Double
    var lost_to_keys: UInt64
  }
  struct Latency: Encodable, Equatable {
    var p50: Figure
    var p99: Figure
  }
  struct EndToEnd: Encodable, Equatable {
    var state: String
    var format: String
    var key_epochs: Int
    var wrong_key_frames: UInt64
  }
  struct SFU: Encodable, Equatable {
    var plaintext_found: Int
    var control_found_percent: Double
  }
  struct Direction: Encodable, Equatable {
    var from: String
    var to: String
    var captured: Int
    var decoded: Int
    var ssim_mean: Figure
    var ssim_lowest: Figure
    var latency_p50_ms: Figure
    var latency_p99_ms: Figure
    var loss_percent: Double
    var bitrate_kbps: Double
    var video_jitter_ms: Double
    var audio_jitter_ms: Double
    var concealed_percent: Double
    var audio_level_db: Figure
    var missing_around_key_change: Int
  }
  struct Check: Encodable, Equatable {
    var name: String
    var ok: Bool
    var detail: String
  }
  struct Search: Encodable, Equatable {
    var frames: Int
    var packets: Int
    var packet_windows_found: Int
    var memory_bytes: Int
    var memory_windows_found: Int
  }

  var pass: Bool
  var setup_ms: Figure
  var video: Video
  var audio: Audio
  var latency_ms: Latency
  var loss_percent: Double
  var e2ee: EndToEnd
  var sfu: SFU
  // More than the fixed keys.
  var seconds: Double
  var setup_runs_ms: [Figure]
  var tone_mean_snr_db: Figure
  var bitrate_kbps: Double
  var directions: [Direction]
  var search: Search
  var control_search: Search
  var checks: [Check]

  /// What was measured, and how it was judged.
  init(_ measured: DemoMeasurements, checks: [DemoCheck]) {
    let directions = measured.directions
    pass = !checks.isEmpty && checks.allSatisfy(\.holds)
    setup_ms = Self.milliseconds(measured.setup)
    video = Video(
      captured: directions.reduce(0) { $0 + $1.video.captured },
      decoded: directions.reduce(0) { $0 + $1.video.decoded }, ssim: Self.rounded(measured.meanSSIM, 4),
      out_of_order: directions.reduce(0) { $0 + $1.video.outOfOrder })
    audio = Audio(
      snr_db: Self.rounded(measured.toneSNR, 2),
      concealed_percent: Self.rounded(measured.concealedPercent, 3),
      lost_to_keys: directions.reduce(0) { $0 + $1.audio.lostToKeys })
    latency_ms = Latency(
      p50: Self.milliseconds(Percentile.of(measured.latencies, percent: 50)),
      p99: Self.milliseconds(Percentile.of(measured.latencies, percent: 99)))
    loss_percent = Self.rounded(measured.lossPercent, 3)
    e2ee = EndToEnd(
      state: !directions.isEmpty && directions.allSatisfy(\.isEncrypted) ? "encrypted" : "not encrypted",
      format: "sframe-aes256gcm-sha512-128", key_epochs: measured.keyEpochs.min() ?? 0,
      wrong_key_frames: measured.wrongKey.decodedFrames)
    sfu = SFU(
      plaintext_found: measured.audit.windows,
      control_found_percent: Self.rounded(measured.control.foundPercent, 3))
    seconds = Self.rounded(measured.seconds, 3)
    setup_runs_ms = measured.setups.map { Self.milliseconds($0) }
    tone_mean_snr_db = Self.rounded(measured.toneMeanSNR, 2)
    bitrate_kbps = Self.rounded(directions.reduce(0) { $0 + $1.bitrate }, 1)
    self.directions = directions.map(Self.direction)
    search = Self.search(measured.audit)
    control_search = Self.search(measured.control)
    self.checks = checks.map { Check(name: $0.name, ok: $0.holds, detail: $0.detail) }
  }

  private static func direction(_ measured: DirectionMeasurement) -> Direction {
    let all = measured.packets + measured.lostPackets
    return Direction(
      from: measured.from, to: measured.to, captured: measured.video.captured,
      decoded: measured.video.decoded, ssim_mean: rounded(Percentile.mean(measured.video.ssim), 4),
      ssim_lowest: rounded(measured.video.ssim.min(), 4),
      latency_p50_ms: milliseconds(Percentile.of(measured.video.latencies, percent: 50)),
      latency_p99_ms: milliseconds(Percentile.of(measured.video.latencies, percent: 99)),
      loss_percent: rounded(all == 0 ? 0 : 100 * Double(measured.lostPackets) / Double(all), 3),
      bitrate_kbps: rounded(measured.bitrate, 1),
      video_jitter_ms: rounded(measured.videoJitter.inMilliseconds, 2),
      audio_jitter_ms: rounded(measured.audioJitter.inMilliseconds, 2),
      concealed_percent: rounded(measured.audio.concealedPercent, 3),
      audio_level_db: rounded(measured.audio.level, 1),
      missing_around_key_change: measured.video.missingAroundRekeying)
  }

  private static func search(_ audit: AuditMeasurement) -> Search {
    Search(
      frames: audit.searchedFrames, packets: audit.packets, packet_windows_found: audit.packetWindows,
      memory_bytes: audit.memoryBytes, memory_windows_found: audit.memoryWindows)
  }

  private static func milliseconds(_ delta: TimeDelta?) -> Figure {
    rounded(delta.map(\.inMilliseconds), 2)
  }

  /// JSON knows no infinity: nil for it.
  private static func rounded(_ value: Double?, _ decimals: Int) -> Figure {
    Figure(value: value.flatMap { $0.isFinite ? rounded($0, decimals) : nil })
  }

  private static func rounded(_ value: Double, _ decimals: Int) -> Double {
    let factor = pow(10, Double(decimals))
    return (value * factor).rounded() / factor
  }

  /// Indented, keys sorted, a line break at the end.
  func json() throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(self) + Data("\n".utf8)
  }
}
