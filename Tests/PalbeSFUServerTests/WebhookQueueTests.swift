import PalbeUnits
import Testing

@testable import PalbeSFUServer

@Suite("Webhooks: order, retries and bounds, in virtual time (livekit-protocol.md 2, Webhooks)")
struct WebhookQueueTests {
  private func delivery(_ event: String, room: String = "hall", url: Int = 0) -> WebhookQueue.Delivery {
    .init(lane: .init(url: url, room: room), event: event, body: [])
  }

  private func filled(_ events: [(String, String)]) -> WebhookQueue {
    var queue = WebhookQueue(capacity: 100)
    for (room, event) in events { _ = queue.append(delivery(event, room: room)) }
    return queue
  }

  private func next(_ queue: inout WebhookQueue, _ now: Instant = .zero) -> WebhookQueue.Delivery? {
    queue.next(at: now)
  }

  @Test("A room's events go one after the other, rooms and URLs beside each other")
  func order() {
    var queue = filled([("hall", "1"), ("hall", "2"), ("attic", "3")])
    _ = queue.append(delivery("4", url: 1))
    let first = [next(&queue), next(&queue), next(&queue)].compactMap { $0 }
    #expect(first.map(\.event) == ["1", "3", "4"])
    #expect(next(&queue) == nil)
    queue.delivered(first[0].lane)
    let second = next(&queue)
    #expect(second?.event == "2")
    for delivery in [first[1], first[2], second].compactMap({ $0 }) { queue.delivered(delivery.lane) }
    #expect(queue.count == 0 && queue.nextDeadline == nil)
  }

  @Test("A failure waits twice as long each time and holds up its room alone; at last it is given up")
  func backOff() {
    var queue = filled([("hall", "1"), ("hall", "2")])
    var now = Instant.zero
    var waits: [TimeDelta] = []
    for attempt in 1...WebhookQueue.attemptLimit {
      guard let delivery = next(&queue, now) else {
        Issue.record("attempt \(attempt)")
        return
      }
      #expect(delivery.event == "1")
      let outcome = queue.failed(delivery.lane, isFinal: false, at: now)
      guard attempt < WebhookQueue.attemptLimit else {
        #expect(outcome == .givenUp)
        break
      }
      #expect(outcome == .again)
      _ = queue.append(delivery)
      guard let deadline = queue.nextDeadline else {
        Issue.record("no deadline")
        return
      }
      let early = next(&queue, deadline - .milliseconds(1))
      #expect(early == nil)
      waits.append(deadline - now)
      now = deadline
    }
    #expect(waits == [0.5, 1, 2, 4, 8, 16, 30].map { TimeDelta.milliseconds(Int($0 * 1_000)) })
    #expect(next(&queue, now)?.event == "2")
  }

  @Test("What the receiver refuses for good is given up at once")
  func refused() {
    var queue = filled([("hall", "1"), ("hall", "2")])
    guard let first = next(&queue) else {
      Issue.record("nothing")
      return
    }
    #expect(queue.failed(first.lane, isFinal: true, at: .zero) == .givenUp)
    #expect(next(&queue)?.event == "2")
  }

  @Test("A full queue takes nothing more, and has room again when something went out")
  func bounded() {
    var queue = WebhookQueue(capacity: 2)
    let taken = (0..<4).map { queue.append(delivery("\($0)", room: "\($0)")) }
    #expect(taken == [true, true, false, false])
    guard let first = next(&queue) else {
      Issue.record("nothing")
      return
    }
    queue.delivered(first.lane)
    let isTaken = queue.append(delivery("4"))
    #expect(isTaken && queue.count == 2)
  }

  @Test("Addresses: http and https alone; the log sees neither password nor path")
  func urls() {
    for text in ["", "hook", "ftp://a/b", "http://", "https:///x", "http://a b", "http://a\r\nX: y"] {
      #expect(WebhookURL(text) == nil, "\(text)")
    }
    #expect(WebhookURL("https://u:p@h.example:8443/secret?k=v")?.label == "https://h.example:8443")
    #expect(WebhookURL("HTTP://[::1]:80?a")?.label == "HTTP://[::1]:80")
  }
}
