import PalbeUnits
import Testing

@testable import PalbeCallCore
@testable import PalbeCallLab

@Suite("An identity is somebody else's text: it cannot write to the terminal of palbe-call join")
struct JoinSummaryTests {
  private let identity = "eve\u{1B}[2J\nada left"
  private let shown = "eve\\u{1B}[2J\\u{A}ada left"

  @Test("each event is one line without control characters")
  func lines() throws {
    let summary = JoinSummary()
    let track = RemoteTrackID(1)
    for (event, expected) in [
      (CallEvent.participantConnected(identity: identity), "\(shown) is here"),
      (.participantDisconnected(identity: identity), "\(shown) left"),
      (
        .trackSubscribed(track, identity: identity, kind: .audio, isEncrypted: true),
        "\(shown): audio, encrypted end to end"
      ), (.trackUnsubscribed(track), "\(shown): a track ended"),
    ] { #expect(summary.line(for: event) == expected) }
  }

  @Test("the table has one line a track")
  func table() {
    var statistics = CallStatistics()
    statistics.remoteTracks = [RemoteTrackStatistics(identity: identity, kind: .audio)]
    let lines = JoinSummary().table(statistics, duration: .seconds(1)).split(separator: "\n")
    #expect(lines.count == 3)
    #expect(lines.last?.hasPrefix("\(shown) audio: 0 packets") == true)
  }
}
