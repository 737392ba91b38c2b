import PalbeUnits
import Testing

@testable import PalbeCallLab

@Suite("How the demo judges a call")
struct DemoCheckTests {
  private func failed(_ change: (inout DemoMeasurements) -> Void) -> [String] {
    var measured = DemoMeasurements.good
    change(&measured)
    return DemoChecks.evaluate(measured).filter { !$0.holds }.map(\.name)
  }

  @Test("A good call passes every check")
  func good() {
    #expect(failed { _ in }.isEmpty)
    #expect(DemoChecks.evaluate(.good).count >= 14)
  }

  @Test("Times never fail a call")
  func times() {
    let names = failed {
      $0.setups = [.seconds(9)]
      $0.directions[0].video.latencies = [.seconds(5)]
      $0.directions[1].videoJitter = .seconds(3)
    }
    #expect(names.isEmpty)
  }

  @Test("Nothing measured fails all that matters")
  func nothing() {
    let checks = DemoChecks.evaluate(DemoMeasurements())
    let held = checks.filter(\.holds).map(\.name)
    #expect(held == ["the run went to its end", "nothing is lost to keys", "sound plays in order"])
  }

  struct Fault: CustomTestStringConvertible, Sendable {
    var check: String
    var testDescription: String
    var change: @Sendable (inout DemoMeasurements) -> Void

    init(
      _ check: String, _ description: String,
      _ change: @escaping @Sendable (inout DemoMeasurements) -> Void
    ) {
      self.check = check
      testDescription = description
      self.change = change
    }
  }

  static let faults = [
    Fault("the run went to its end", "a trouble") { $0.troubles = ["ben cannot join"] },
    Fault("pictures arrive", "94 %") { $0.directions[0].video.decoded = 282 },
    Fault("pictures arrive", "94 % the other way") { $0.directions[1].video.decoded = 282 },
    Fault("pictures arrive", "none captured") { $0.directions[1].video.captured = 0 },
    Fault("pictures arrive", "unreadable pictures") { $0.directions[1].video.unreadable = 1 },
    Fault("pictures arrive in order", "one swapped") { $0.directions[1].video.outOfOrder = 1 },
    Fault("pictures look like their source", "blurred") { $0.directions[0].video.ssim = [0.94, 0.95] },
    Fault("pictures look like their source", "not compared") { $0.directions[1].video.ssim = [] },
    Fault("the tone is clean", "24 dB") { $0.toneSNR = 24 },
    Fault("the tone is clean", "no tone") { $0.toneSNR = nil },
    Fault("both are heard", "one silent") { $0.directions[1].audio.level = -.infinity },
    Fault("sound has no holes", "1 %") { $0.directions[0].audio.concealed = 5 },
    Fault("sound has no holes", "nothing played") { $0.directions[1].audio = AudioMeasurement(level: -15) },
    Fault("nothing is lost to keys", "an audio packet") { $0.directions[0].audio.lostToKeys = 1 },
    Fault("nothing is lost to keys", "a picture") { $0.directions[1].videoLostToKeys = 1 },
    Fault("sound plays in order", "one swapped") { $0.directions[1].audio.outOfOrder = 1 },
    Fault("no picture is lost to the key change", "one lost") {
      $0.directions[0].video.missingAroundRekeying = 1
    },
    Fault("no picture is lost to the key change", "none sent then") {
      $0.directions[1].video.capturedAroundRekeying = 0
    },
    Fault("the call is encrypted end to end", "a track is not") { $0.directions[1].isEncrypted = false },
    Fault("the key changed once", "no change") { $0.keyEpochs = [1, 1] },
    Fault("the key changed once", "one side only") { $0.keyEpochs = [2, 1] },
    Fault("the key changed once", "another epoch") { $0.groupEpoch = 1 },
    Fault("a wrong key opens nothing", "one decoded") { $0.wrongKey.decodedFrames = 1 },
    Fault("a wrong key opens nothing", "something heard") { $0.wrongKey.peak = -60 },
    Fault("a wrong key opens nothing", "nothing received") { $0.wrongKey.packets = 0 },
    Fault("a wrong key opens nothing", "nothing refused") { $0.wrongKey.refusedFrames = 0 },
    Fault("the SFU saw no plaintext", "a window in a packet") { $0.audit.packetWindows = 1 },
    Fault("the SFU saw no plaintext", "a window in memory") { $0.audit.memoryWindows = 1 },
    Fault("the SFU saw no plaintext", "no packets") { $0.audit.packets = 0 },
    Fault("the SFU saw no plaintext", "no memory") { $0.audit.memoryBytes = 0 },
    Fault("the SFU saw no plaintext", "no frames") { $0.audit.searchedFrames = 0 },
    Fault("the search can find plaintext", "98 %") { $0.control.foundFrames = 441 },
    Fault("the search can find plaintext", "no frames") { $0.control.searchedFrames = 0 },
    Fault("the search can find plaintext in memory", "no window") { $0.control.memoryWindows = 0 },
  ]

  @Test("One fault fails its check and no other", arguments: faults)
  func fault(_ fault: Fault) {
    #expect(failed(fault.change) == [fault.check])
  }
}
