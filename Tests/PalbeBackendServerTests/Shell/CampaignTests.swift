import PalbeServerCampaign
import Testing

@Suite("Clients at a server process that is killed")
struct CampaignTests {
  @Test(
    "4.1, 4.5: nothing acknowledged is lost, sequences are dense, one commit an epoch; `server-campaign run` for more"
  )
  func short() throws {
    var settings = CampaignSettings()
    settings.operationCount = 2_400
    let report = try Campaign(settings).run()
    for complaint in report.complaints { Issue.record("\(complaint)") }
    #expect(report.operations == 2_400 && report.kills == 4 && report.accepted > 200 && report.commits > 20)
  }
}
