import Foundation
import PalbeUnits
import Testing

@testable import PalbeCallLab

@Suite("The demo's report and table")
struct DemoReportTests {
  private func object(_ measured: DemoMeasurements) throws -> [String: Any] {
    let report = DemoReport(measured, checks: DemoChecks.evaluate(measured))
    return try #require(try JSONSerialization.jsonObject(with: report.json()) as? [String: Any])
  }

  private func keys(_ object: [String: Any], _ name: String) throws -> Set<String> {
    Set(try #require(object[name] as? [String: Any]).keys)
  }

  @Test("The report has the keys that programs rely on, for a good call and for one that never was")
  func keys() throws {
    for measured in [DemoMeasurements.good, DemoMeasurements()] {
      let report = try object(measured)
      #expect(
        Set(report.keys).isSuperset(of: [
          "pass", "setup_ms", "video", "audio", "latency_ms", "loss_percent", "e2ee", "sfu",
        ]))
      #expect(try keys(report, "video") == ["captured", "decoded", "ssim", "out_of_order"])
      #expect(try keys(report, "audio") == ["snr_db", "concealed_percent", "lost_to_keys"])
      #expect(try keys(report, "latency_ms") == ["p50", "p99"])
      #expect(try keys(report, "e2ee") == ["state", "format", "key_epochs", "wrong_key_frames"])
      #expect(try keys(report, "sfu") == ["plaintext_found", "control_found_percent"])
    }
  }

  @Test("The report says what was measured")
  func values() throws {
    let report = try object(.good)
    #expect(report["pass"] as? Bool == true)
    #expect(report["setup_ms"] as? Double == 180)
    let video = try #require(report["video"] as? [String: Any])
    #expect(video["captured"] as? Int == 600)
    #expect(video["decoded"] as? Int == 598)
    #expect(video["out_of_order"] as? Int == 0)
    #expect(video["ssim"] as? Double == 0.975)
    let audio = try #require(report["audio"] as? [String: Any])
    #expect(audio["snr_db"] as? Double == 41.5)
    #expect(audio["lost_to_keys"] as? Int == 0)
    let latency = try #require(report["latency_ms"] as? [String: Any])
    #expect(latency["p50"] as? Double == 34)
    #expect(latency["p99"] as? Double == 49)
    #expect(report["loss_percent"] as? Double == 0.2)
    let e2ee = try #require(report["e2ee"] as? [String: Any])
    #expect(e2ee["state"] as? String == "encrypted")
    #expect(e2ee["key_epochs"] as? Int == 2)
    let sfu = try #require(report["sfu"] as? [String: Any])
    #expect(sfu["plaintext_found"] as? Int == 0)
    #expect(sfu["control_found_percent"] as? Double == 99.778)
    #expect((report["checks"] as? [Any])?.count == DemoChecks.evaluate(.good).count)
  }

  @Test("A call that never was fails, and unknown figures are null")
  func unknown() throws {
    var measured = DemoMeasurements()
    measured.troubles = ["palbe-sfu ended"]
    let report = try object(measured)
    #expect(report["pass"] as? Bool == false)
    #expect(report["setup_ms"] is NSNull)
    #expect((report["video"] as? [String: Any])?["ssim"] is NSNull)
    #expect((report["latency_ms"] as? [String: Any])?["p50"] is NSNull)
  }

  @Test("The table marks each check and names the failed ones in its last line")
  func table() throws {
    var measured = DemoMeasurements.good
    let good = DemoTable.lines(measured, checks: DemoChecks.evaluate(measured))
    #expect(good.last?.hasPrefix("PASS") == true)
    #expect(!good.contains { $0.contains("FAILED") })
    #expect(good.contains { $0.contains("180 ms (median of 180, 160, 220)") })
    #expect(good.contains { $0.contains("300 captured, 299 decoded, 1 dropped, SSIM 0.975") })
    #expect(good.contains { $0.contains("1080 kbit/s, 3 of 1503 packets lost") })
    #expect(good.allSatisfy { $0.count <= 140 })

    measured.toneSNR = 3
    measured.audit.memoryWindows = 2
    let bad = DemoTable.lines(measured, checks: DemoChecks.evaluate(measured))
    #expect(bad.count { $0.hasPrefix("  FAILED") } == 2)
    let last = try #require(bad.last)
    #expect(last.hasPrefix("FAILED: 2 of "))
    #expect(last.hasSuffix("the tone is clean, the SFU saw no plaintext"))
  }

  @Test("Progress is one line at a terminal and a line for each phase elsewhere")
  func progress() {
    for (isTerminal, expected) in [
      (true, "\r\u{1b}[2Kone\r\u{1b}[2Kone: half\r\u{1b}[2Ktwo\r\u{1b}[2K"), (false, "one\ntwo\n"),
    ] {
      let written = Written()
      let progress = Progress(isTerminal: isTerminal) { written.append($0) }
      progress.phase("one")
      progress.detail("half")
      progress.phase("two")
      progress.finish()
      progress.finish()
      progress.phase("late")
      #expect(written.text == expected)
    }
  }

  private final class Written: @unchecked Sendable {
    private let lock = NSLock()
    private var value = ""
    func append(_ text: String) { lock.withLock { value += text } }
    var text: String { lock.withLock { value } }
  }
}
