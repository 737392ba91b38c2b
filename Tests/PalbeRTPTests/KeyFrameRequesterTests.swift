import PalbeRTP
import PalbeUnits
import Testing

@Suite struct KeyFrameRequesterTests {
  @Test("livekit#3490: asks at once, then every interval, and not sooner after a key frame")
  func interval() {
    var requester = KeyFrameRequester(interval: .milliseconds(500))
    var now = Instant(nanoseconds: 1_000_000_000)
    let idle = requester.poll(at: now)
    requester.want()
    let first = requester.poll(at: now)
    requester.want()
    let again = requester.poll(at: now)
    now += .milliseconds(499)
    let early = requester.poll(at: now)
    now += .milliseconds(1)
    let repeated = requester.poll(at: now)
    requester.rest()
    let deadline = requester.nextDeadline
    requester.want()
    now += .milliseconds(100)
    let soon = requester.poll(at: now)
    #expect([idle, first, again, early, repeated, soon] == [false, true, false, false, true, false])
    #expect(deadline == nil)
    #expect(requester.nextDeadline == now + .milliseconds(400))
    #expect(requester.count == 2)
  }
}
