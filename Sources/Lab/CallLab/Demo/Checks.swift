import Foundation
import PalbeUnits

/// A condition that a call must meet, and whether this one did.
struct DemoCheck: Equatable, Sendable {
  /// A few plain words, such as "pictures arrive".
  var name: String
  var holds: Bool
  /// What was measured and what was wanted.
  var detail: String
}

/// The conditions of a good call. Times are reported and decide nothing.
enum DemoChecks {
  /// Of the pictures captured after the other side's first, so many per cent are decoded.
  static let decodedPercent = 95.0
  /// Mean similarity of decoded pictures to their source.
  static let ssim = 0.95
  /// In dB; the tone's 100 ms windows, the middle one.
  static let toneSNR = 25.0
  /// Per cent of audio pulls.
  static let concealedPercent = 0.5
  /// Level below which nothing is heard, dB below full scale.
  static let silence = -70.0
  /// Per cent of a control run's frames that the search must find.
  static let controlPercent = 99.0

  /// Judges what was measured.
  static func evaluate(_ measured: DemoMeasurements) -> [DemoCheck] {
    var checks: [DemoCheck] = []
    func check(_ name: String, _ holds: Bool, _ detail: String) {
      checks.append(DemoCheck(name: name, holds: holds, detail: detail))
    }
    check(
      "the run went to its end", measured.troubles.isEmpty,
      measured.troubles.isEmpty ? "" : measured.troubles.joined(separator: "; "))
    let directions = measured.directions
    check(
      "pictures arrive",
      directions.count == 2
        && directions.allSatisfy {
          $0.video.captured > 0 && $0.video.decodedPercent >= decodedPercent && $0.video.unreadable == 0
        },
      directions.map { "\($0.from) \(fixed($0.video.decodedPercent, 1)) %" }.joined(separator: ", ")
        + ", wanted \(fixed(decodedPercent, 0)) %")
    let outOfOrder = directions.reduce(0) { $0 + $1.video.outOfOrder }
    check("pictures arrive in order", outOfOrder == 0 && !directions.isEmpty, "\(outOfOrder) out of order")
    check(
      "pictures look like their source", (measured.meanSSIM ?? 0) >= ssim,
      "SSIM \(measured.meanSSIM.map { fixed($0, 3) } ?? "unknown"), wanted \(ssim)")
    check(
      "the tone is clean", (measured.toneSNR ?? -.infinity) >= toneSNR,
      "\(measured.toneSNR.map { fixed($0, 1) } ?? "no tone heard,") dB, wanted \(fixed(toneSNR, 0))")
    let quietest = directions.map(\.audio.level).min() ?? -.infinity
    check("both are heard", quietest > -50, "quieter side \(decibels(quietest))")
    check(
      "sound has no holes", directions.count == 2 && measured.concealedPercent <= concealedPercent,
      "\(fixed(measured.concealedPercent, 2)) % concealed, wanted at most \(concealedPercent) %")
    let lost = directions.reduce(0) { $0 + $1.audio.lostToKeys }
    let lostVideo = directions.reduce(0) { $0 + $1.videoLostToKeys }
    check(
      "nothing is lost to keys", lost == 0 && lostVideo == 0,
      "\(lost) audio and \(lostVideo) video frames")
    let swapped = directions.reduce(0) { $0 + $1.audio.outOfOrder }
    check("sound plays in order", swapped == 0, "\(swapped) packets out of order")
    let missing = directions.reduce(0) { $0 + $1.video.missingAroundRekeying }
    check(
      "no picture is lost to the key change",
      missing == 0 && directions.allSatisfy { $0.video.capturedAroundRekeying > 0 } && !directions.isEmpty,
      "\(missing) of \(directions.reduce(0) { $0 + $1.video.capturedAroundRekeying }) within 1 s of it")
    let isEncrypted = directions.count == 2 && directions.allSatisfy(\.isEncrypted)
    check(
      "the call is encrypted end to end", isEncrypted,
      isEncrypted ? "every track is announced as encrypted" : "a track is not announced as encrypted")
    check(
      "the key changed once", measured.keyEpochs == [2, 2] && measured.groupEpoch == 2,
      "\(measured.keyEpochs.map(String.init).joined(separator: " and ")) keys, MLS epoch "
        + "\(measured.groupEpoch)")
    addSecrecy(measured, check)
    return checks
  }

  private static func addSecrecy(
    _ measured: DemoMeasurements, _ check: (_ name: String, _ holds: Bool, _ detail: String) -> Void
  ) {
    let wrong = measured.wrongKey
    check(
      "a wrong key opens nothing",
      wrong.decodedFrames == 0 && wrong.peak < silence && wrong.packets > 0 && wrong.refusedFrames > 0,
      "\(wrong.decodedFrames) frames of \(wrong.packets) packets, heard \(decibels(wrong.peak))")
    let audit = measured.audit
    check(
      "the SFU saw no plaintext",
      audit.windows == 0 && audit.packets > 0 && audit.memoryBytes > 0 && audit.searchedFrames > 0,
      "\(audit.packetWindows) windows in \(audit.packets) RTP packets, \(audit.memoryWindows) in "
        + "\(audit.memoryBytes >> 20) MiB of its memory")
    check(
      "the search can find plaintext",
      measured.control.foundPercent >= controlPercent && measured.control.searchedFrames > 0,
      "\(fixed(measured.control.foundPercent, 2)) % of \(measured.control.searchedFrames) unencrypted frames in "
        + "RTP packets, wanted \(fixed(controlPercent, 0)) %")
    check(
      "the search can find plaintext in memory", measured.control.memoryWindows > 0,
      "\(measured.control.memoryWindows) windows of unencrypted frames, wanted any")
  }

  /// A number with so many decimals.
  static func fixed(_ value: Double, _ decimals: Int) -> String { String(format: "%.\(decimals)f", value) }

  /// A level for people.
  static func decibels(_ level: Double) -> String {
    level.isFinite ? "\(fixed(level, 1)) dBFS" : "silence"
  }
}
