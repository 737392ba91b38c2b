import PalbeUnits

@testable import PalbeCallLab

extension DemoMeasurements {
  /// A call as it should be.
  static var good: DemoMeasurements {
    var measured = DemoMeasurements()
    measured.seconds = 10
    measured.setups = [.milliseconds(180), .milliseconds(160), .milliseconds(220)]
    measured.directions = [.good("anna", "ben"), .good("ben", "anna")]
    measured.toneSNR = 41.5
    measured.toneMeanSNR = 38
    measured.keyEpochs = [2, 2]
    measured.groupEpoch = 2
    measured.wrongKey = WrongKeyMeasurement(packets: 1_000, refusedFrames: 500, decodedFrames: 0)
    measured.audit = AuditMeasurement(
      searchedFrames: 1_500, loggedFrames: 1_600, packets: 3_000, packetBytes: 2_500_000,
      memoryBytes: 40 << 20)
    measured.control = AuditMeasurement(
      searchedFrames: 450, loggedFrames: 480, packets: 900, packetBytes: 800_000, packetWindows: 200_000,
      foundFrames: 449, memoryBytes: 40 << 20, memoryWindows: 5_000)
    return measured
  }
}

extension DirectionMeasurement {
  /// A direction as it should be.
  static func good(_ from: String, _ to: String) -> DirectionMeasurement {
    var direction = DirectionMeasurement(from: from, to: to)
    direction.video.captured = 300
    direction.video.decoded = 299
    direction.video.latencies = (0..<299).map { .milliseconds(20 + $0 / 10) }
    direction.video.capturedAroundRekeying = 60
    direction.video.ssim = [0.97, 0.98]
    direction.audio = AudioMeasurement(played: 500, concealed: 1, level: -15)
    direction.packets = 1_500
    direction.lostPackets = 3
    direction.bytes = 1_350_000
    direction.videoJitter = .milliseconds(2)
    direction.audioJitter = .milliseconds(1)
    direction.duration = .seconds(10)
    direction.isEncrypted = true
    return direction
  }
}
