import PalbeChatClient
import PalbeTestKit
import Testing

@testable import PalbeChatCampaign

@Suite("The campaign of killed clients and servers (4.5)")
struct ChatCampaignTests {
  private func entry(_ seq: Int, _ text: String, pending: Bool = false) -> CampaignState.Entry {
    CampaignState.Entry(
      seq: pending ? "pending" : "\(seq)", id: "id-\(text)", content: "d '\(text)' []", isPending: pending)
  }

  private func state(_ index: Int, _ rows: [CampaignState.Entry], noted: [String] = []) -> CampaignState {
    CampaignState(index: index, chats: ["g": rows], noted: noted.map { ("g", $0) })
  }

  @Test("It finds what is lost, doubled, pending, in another order, or different")
  func finds() {
    let good = [entry(1, "a"), entry(2, "b")]
    #expect(CampaignState.complaints([state(0, good, noted: ["a"]), state(1, good, noted: ["b"])]).isEmpty)
    let bad: [[CampaignState]] = [
      [state(0, good, noted: ["a", "lost"])],
      [state(0, good + [entry(3, "a")])],
      [state(0, good), state(1, [entry(2, "b"), entry(1, "a")])],
      [state(0, good), state(1, [entry(1, "a")])],
      [state(0, good), state(1, [entry(1, "a"), entry(2, "c")])],
      [state(0, good + [entry(3, "c", pending: true)])],
    ]
    for states in bad { #expect(!CampaignState.complaints(states).isEmpty) }
  }

  @Test(
    "4.5: three clients and a server that are killed lose nothing and double nothing",
    .timeLimit(.minutes(3)),
    .disabled("written before the shell was there; it has not run over it yet"))
  func short() throws {
    var settings = ChatCampaignSettings()
    (settings.clientCount, settings.seconds, settings.killInterval) = (3, 4, 0.8)
    settings.actionInterval = 0.1
    let report = try ChatCampaign(settings).run()
    #expect(report.complaints.isEmpty, "\(report.complaints)")
    #expect(report.messages > 10 && report.clientKills + report.serverKills > 1)
  }
}
