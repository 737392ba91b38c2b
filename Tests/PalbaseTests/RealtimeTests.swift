import PalbeUnits
import Testing

@testable import Palbase

/// A machine in virtual time, with what it did in plain sight.
struct RealtimeDriver {
  var machine: RealtimeMachine
  var now = Instant(nanoseconds: 1_000_000_000)
  var connects: [(link: UInt64, credentials: RealtimeMachine.Credentials)] = []
  var sent: [(link: UInt64, text: String)] = []
  var closed: [UInt64] = []
  var renewals: [String] = []
  var enrolments: [String] = []
  var revocations: [String] = []
  var items: [UInt64: [RealtimeItem]] = [:]
  var answers: [UInt64: Result<[UInt8], BackendError>] = [:]

  init(seed: UInt64 = 1) { machine = RealtimeMachine(random: RandomSource(seed: seed)) }

  mutating func drain() {
    while let action = machine.pollAction() {
      switch action {
      case .connect(let link, let credentials): connects.append((link, credentials))
      case .send(let link, let text):
        #expect(!closed.contains(link))
        sent.append((link, text))
      case .close(let link): closed.append(link)
      case .renewToken(let used): renewals.append(used)
      case .enrol(let device, _): enrolments.append(device.token)
      case .markRevoked(let device, _): revocations.append(device.token)
      case .deliver(let id, let item): items[id, default: []].append(item)
      case .answer(let id, let result):
        #expect(answers[id] == nil)
        answers[id] = result
      }
    }
  }

  mutating func act(_ body: (inout RealtimeMachine, Instant) -> Void) {
    body(&machine, now)
    drain()
  }

  static func credentials(
    _ user: String = "usr_1", token: String = "at-1", device: String? = "dt-1", renewal: Int = 480
  ) -> RealtimeMachine.Credentials {
    RealtimeMachine.Credentials(
      userId: user, accessToken: token, renewal: Instant(nanoseconds: 1_000_000_000) + .seconds(renewal),
      device: device.map { DeviceCredential(deviceId: "mdv_1", token: $0) })
  }

  mutating func setCredentials(_ credentials: RealtimeMachine.Credentials?) {
    act { $0.setCredentials(credentials, at: $1) }
  }

  mutating func subscribe(_ id: UInt64, _ topic: String) { act { $0.subscribe(id, to: topic, at: $1) } }

  /// Runs the timers up to `delta` from now.
  mutating func pass(_ delta: TimeDelta) {
    let end = now + delta
    while let next = machine.nextDeadline, next <= end {
      now = max(now, next)
      act { $0.handleTimeout(at: $1) }
    }
    now = end
  }

  /// The link that is being opened or open.
  var link: UInt64 { connects.last!.link }

  mutating func open() { act { [link] in $0.linkOpened(link, at: $1) } }
  mutating func receive(_ text: String) { act { [link] in $0.received(link, text, at: $1) } }
  mutating func end(_ end: RealtimeMachine.LinkEnd) { act { [link] in $0.linkEnded(link, end, at: $1) } }

  /// Signed in, subscribed to a topic that the server has, and open.
  static func joined(_ topic: String = "t") -> RealtimeDriver {
    var driver = RealtimeDriver()
    driver.setCredentials(credentials())
    driver.subscribe(1, topic)
    driver.open()
    driver.receive(#"{"type":"reply","id":1,"topic":"t","online":[]}"#)
    return driver
  }
}

extension RealtimeItem {
  var isJoined: Bool { if case .joined = self { true } else { false } }
}

@Suite("Realtime: the machine in virtual time (S0-93, S1-18, S1-26, requirements 4.3)")
struct RealtimeMachineTests {
  @Test("Nothing is opened without a subscriber, a signed-in user and an enrolled device")
  func whenNotToOpen() {
    var driver = RealtimeDriver()
    driver.subscribe(1, "t")
    #expect(driver.items[1] == [.ended(.signedOut)] && driver.connects.isEmpty)
    driver.setCredentials(RealtimeDriver.credentials(device: nil))
    driver.subscribe(2, "t")
    driver.pass(.seconds(100))
    #expect(driver.connects.isEmpty && driver.items[2] == nil)
    driver.setCredentials(RealtimeDriver.credentials())
    #expect(driver.connects.count == 1 && driver.connects[0].credentials.device?.token == "dt-1")
  }

  @Test("S0-93: subscribing, events, and the same topic for two: one socket, each hears what is its own")
  func events() {
    var driver = RealtimeDriver.joined()
    #expect(driver.sent.map(\.text) == [#"{"type":"subscribe","id":1,"topic":"t"}"#])
    driver.subscribe(2, "u")
    driver.subscribe(3, "t")
    driver.receive(#"{"type":"reply","id":2}"#)
    driver.receive(#"{"type":"reply","id":3}"#)
    let event = #"{"type":"event","topic":"t","event":"typing","on":true}"#
    driver.receive(event)
    #expect(driver.connects.count == 1)
    #expect(driver.items[1]?.last == .event(name: "typing", Array(event.utf8)))
    #expect(driver.items[1]?.count == 2 && driver.items[3]?.count == 2)
    #expect(driver.items[2]?.map(\.isJoined) == [true])
  }

  @Test(
    "A drop: interrupted, opened again by itself after a jittered wait, joined again; waits double to 30 s")
  func reconnect() {
    var driver = RealtimeDriver.joined()
    var waits: [TimeDelta] = []
    for _ in 0..<12 {
      let count = driver.connects.count
      driver.end(.failed)
      let before = driver.now
      while driver.connects.count == count { driver.pass(.milliseconds(50)) }
      waits.append(driver.now - before)
    }
    #expect(driver.items[1]?.last == .interrupted)
    for (index, wait) in waits.enumerated() {
      let whole = min(30_000, 500 << min(index, 6))
      #expect(wait >= .milliseconds(whole / 2) && wait <= .milliseconds(whole + 50), "\(index)")
    }
    driver.open()
    driver.receive(#"{"type":"reply","id":1}"#)
    #expect(driver.items[1]?.map(\.isJoined) == [true, false, true])
  }

  @Test("A socket that held for 30 s begins with short waits again; one that breaks at once does not")
  func steady() {
    var driver = RealtimeDriver.joined()
    for _ in 0..<6 {
      driver.end(.closed(code: 1_006, reason: ""))
      driver.pass(.seconds(31))
      driver.open()
    }
    driver.pass(.milliseconds(1))
    driver.end(.closed(code: 1_006, reason: ""))
    #expect(driver.machine.nextDeadline! - driver.now >= .seconds(8))
    driver.pass(.seconds(31))
    driver.open()
    driver.receive(#"{"type":"reply","id":1}"#)
    driver.pass(.seconds(30))
    driver.end(.closed(code: 1_006, reason: ""))
    #expect(driver.machine.nextDeadline! - driver.now <= .milliseconds(500))
  }

  @Test("A heartbeat each 25 s")
  func heartbeat() {
    var driver = RealtimeDriver.joined()
    driver.pass(.seconds(101))
    #expect(driver.sent.filter { $0.text == #"{"type":"heartbeat"}"# }.count == 4)
  }

  @Test("A server that answers nothing for 15 s is given up")
  func unanswered() {
    var driver = RealtimeDriver.joined()
    driver.act { $0.request(7, .typing(group: "grp_1", isOn: true), at: $1) }
    #expect(driver.sent.last?.text == #"{"type":"typing","id":2,"group":"grp_1","on":true}"#)
    driver.pass(.milliseconds(14_999))
    #expect(driver.answers.isEmpty)
    driver.pass(.milliseconds(1))
    #expect(driver.answers[7] == .failure(.unreachable(.timedOut)))
    #expect(driver.closed == [1] && driver.items[1]?.last == .interrupted)
    driver.pass(.seconds(1))
    #expect(driver.connects.count == 2)
  }

  @Test("Requests: the reply, the refusal, and at a drop the fault; without a connection at once")
  func requests() {
    var driver = RealtimeDriver.joined()
    driver.act { $0.request(1, .fetch(after: 0, limit: 10), at: $1) }
    driver.act { $0.request(2, .acknowledge(upTo: 5), at: $1) }
    driver.act { $0.request(3, .acknowledge([1, 2]), at: $1) }
    driver.receive(#"{"type":"reply","id":2,"rows":[]}"#)
    driver.receive(#"{"type":"error","id":3,"error":{"code":"superseded","status":409,"message":"m"}}"#)
    driver.end(.failed)
    driver.act { $0.request(4, .acknowledge(upTo: 5), at: $1) }
    #expect(
      driver.sent.map(\.text).suffix(3) == [
        #"{"type":"fetch","id":2,"after":0,"limit":10}"#, #"{"type":"ack","id":3,"up_to":5}"#,
        #"{"type":"ack","id":4,"ids":[1,2]}"#,
      ])
    #expect(driver.answers[1] == .success(Array(#"{"type":"reply","id":2,"rows":[]}"#.utf8)))
    guard case .failure(.server(let failure)) = driver.answers[2] else {
      Issue.record("refused")
      return
    }
    #expect(failure.code == .superseded && failure.status == 409)
    #expect(driver.answers[3] == .failure(.unreachable(.connectionLost)))
    #expect(driver.answers[4] == .failure(.unreachable(.noConnection)))
  }

  @Test("1,000 subscriptions after a reconnect: at most 32 frames wait for an answer at a time")
  func window() {
    var driver = RealtimeDriver()
    driver.setCredentials(RealtimeDriver.credentials())
    for id in 0..<1_000 { driver.subscribe(UInt64(id), "t\(id)") }
    driver.open()
    var answered = 0
    while answered < 1_000 {
      #expect(driver.sent.count - answered <= 32)
      answered += 1
      driver.receive(#"{"type":"reply","id":\#(answered)}"#)
    }
    #expect(driver.items.values.filter { $0.map(\.isJoined) == [true] }.count == 1_000)
  }

  @Test(
    "The server ends a subscription: everybody on it hears why, the others go on",
    arguments: [
      ("superseded", RealtimeEnd.superseded), ("not_a_member", .notAMember),
      ("device_revoked", .deviceRevoked),
      ("group_reset", .groupReset), ("moon_phase", .other("moon_phase")),
    ])
  func ended(reason: String, end: RealtimeEnd) {
    var driver = RealtimeDriver.joined()
    driver.subscribe(2, "t")
    driver.subscribe(3, "u")
    driver.receive(#"{"type":"subscription_ended","topic":"t","reason":"\#(reason)"}"#)
    #expect(driver.items[1]?.last == .ended(end) && driver.items[2]?.last == .ended(end))
    driver.receive(#"{"type":"event","topic":"t","event":"x"}"#)
    #expect(driver.items[1]?.last == .ended(end) && driver.items[3]?.last != .ended(end))
    driver.end(.failed)
    driver.pass(.seconds(2))
    driver.open()
    #expect(driver.sent.last?.text == #"{"type":"subscribe","id":1,"topic":"u"}"#)
  }

  @Test("A refused subscription ends; one that may pass is asked again, later each time")
  func refusedSubscription() {
    var driver = RealtimeDriver.joined()
    driver.subscribe(2, "u")
    driver.receive(#"{"type":"error","id":2,"error":{"code":"not_a_member","status":403}}"#)
    #expect(driver.items[2] == [.ended(.notAMember)])
    driver.subscribe(3, "v")
    driver.receive(#"{"type":"error","id":3,"error":{"code":"rate_limited","status":429,"retry_after":7}}"#)
    #expect(driver.items[3] == nil)
    driver.pass(.milliseconds(7_900))
    #expect(driver.sent.count == 3)
    driver.pass(.milliseconds(200))
    #expect(driver.sent.last?.text == #"{"type":"subscribe","id":4,"topic":"v"}"#)
    driver.receive(#"{"type":"reply","id":4}"#)
    #expect(driver.items[3]?.map(\.isJoined) == [true])
  }

  @Test("The last subscriber goes: unsubscribed, and closed after 5 s; a new one in between keeps it")
  func linger() {
    var driver = RealtimeDriver.joined()
    driver.act { $0.unsubscribe(1, at: $1) }
    #expect(driver.sent.last?.text == #"{"type":"unsubscribe","id":2,"topic":"t"}"#)
    driver.receive(#"{"type":"reply","id":2}"#)
    driver.pass(.seconds(4))
    driver.subscribe(2, "u")
    driver.receive(#"{"type":"reply","id":3}"#)
    driver.pass(.seconds(10))
    #expect(driver.closed.isEmpty)
    driver.act { $0.unsubscribe(2, at: $1) }
    driver.receive(#"{"type":"reply","id":4}"#)
    driver.pass(.seconds(5))
    #expect(driver.closed == [1] && driver.machine.phase == .idle && driver.machine.nextDeadline == nil)
  }

  @Test("S1-18: the socket is one person's: sign-out, and somebody else, end every subscription and close it")
  func persons() {
    var driver = RealtimeDriver.joined()
    driver.setCredentials(RealtimeDriver.credentials("usr_2"))
    #expect(driver.closed == [1] && driver.items[1]?.last == .ended(.personChanged))
    driver.subscribe(2, "t")
    #expect(driver.connects.last?.credentials.userId == "usr_2")
    driver.setCredentials(nil)
    #expect(driver.closed == [1, 2] && driver.items[2]?.last == .ended(.signedOut))
    driver.pass(.seconds(100))
    #expect(driver.connects.count == 2)
  }

  @Test(
    "A renewed token goes over the open socket; the renewal is asked for before the old one is over, once")
  func renewal() {
    var driver = RealtimeDriver.joined()
    driver.pass(.seconds(479))
    #expect(driver.renewals.isEmpty)
    driver.pass(.seconds(60))
    #expect(driver.renewals == ["at-1"])
    driver.setCredentials(RealtimeDriver.credentials(token: "at-2", renewal: 1_000))
    #expect(driver.sent.last?.text == #"{"type":"renew","id":2,"access_token":"at-2"}"#)
    #expect(driver.closed.isEmpty)
    driver.receive(#"{"type":"error","id":2,"error":{"code":"session_expired","status":401}}"#)
    #expect(driver.renewals == ["at-1", "at-2"])
    driver.setCredentials(RealtimeDriver.credentials(token: "at-3", renewal: 1_000))
    driver.receive(#"{"type":"error","id":3,"error":{"code":"invalid_request","status":400}}"#)
    // Another session's: a new socket carries it.
    #expect(driver.closed == [1])
    driver.pass(.seconds(1))
    #expect(driver.connects.last?.credentials.accessToken == "at-3")
  }

  @Test("A token that is renewed while the socket is being opened is handed over when it is open")
  func renewedMeanwhile() {
    var driver = RealtimeDriver()
    driver.setCredentials(RealtimeDriver.credentials())
    driver.subscribe(1, "t")
    driver.setCredentials(RealtimeDriver.credentials(token: "at-2"))
    driver.open()
    #expect(driver.sent.first?.text == #"{"type":"renew","id":1,"access_token":"at-2"}"#)
  }

  @Test("4401: the token is renewed, the new one connects; a server that always says so is not hammered")
  func sessionOver() {
    var driver = RealtimeDriver.joined()
    for index in 1...20 {
      driver.end(.closed(code: 4_401, reason: "session_expired"))
      #expect(driver.renewals.count == index)
      driver.setCredentials(RealtimeDriver.credentials(token: "at-\(index + 1)", renewal: 100_000))
      driver.pass(.seconds(31))
      #expect(driver.connects.last?.credentials.accessToken == "at-\(index + 1)")
    }
    // 20 rounds took 20 connections, not thousands.
    #expect(driver.connects.count == 21)
    driver.end(.closed(code: 4_401, reason: "session_ended"))
    driver.setCredentials(nil)
    #expect(driver.items[1]?.last == .ended(.signedOut))
  }

  @Test("401 at the upgrade is the same; without a new token it tries again later by itself")
  func refusedUpgrade() {
    var driver = RealtimeDriver()
    driver.setCredentials(RealtimeDriver.credentials())
    driver.subscribe(1, "t")
    driver.end(.refused(status: 401, code: .sessionExpired))
    #expect(driver.renewals == ["at-1"])
    driver.pass(.seconds(4))
    #expect(driver.connects.count == 1)
    driver.pass(.seconds(7))
    #expect(driver.connects.count == 2)
  }

  @Test(
    "4403: the device was removed: all ends, nothing is opened until it is enrolled anew",
    arguments: [
      RealtimeMachine.LinkEnd.closed(code: 4_403, reason: "device_revoked"),
      .refused(status: 403, code: .deviceRevoked),
    ])
  func deviceRevoked(end: RealtimeMachine.LinkEnd) {
    var driver = RealtimeDriver()
    driver.setCredentials(RealtimeDriver.credentials())
    driver.subscribe(1, "t")
    if case .closed = end { driver.open() }
    driver.end(end)
    #expect(driver.items[1]?.last == .ended(.deviceRevoked) && driver.revocations == ["dt-1"])
    var revoked = RealtimeDriver.credentials()
    revoked.device?.isRevoked = true
    driver.setCredentials(revoked)
    driver.subscribe(2, "t")
    driver.pass(.seconds(1_000))
    #expect(driver.items[2] == [.ended(.deviceRevoked)] && driver.connects.count == 1)
    driver.setCredentials(RealtimeDriver.credentials(device: "dt-2"))
    driver.subscribe(3, "t")
    #expect(driver.connects.last?.credentials.device?.token == "dt-2")
  }

  @Test("A refusal without a body, as it comes over TLS: a renewal tells whether the session is over")
  func silentRefusal() {
    var driver = RealtimeDriver()
    driver.setCredentials(RealtimeDriver.credentials())
    driver.subscribe(1, "t")
    driver.end(.refused(status: 403, code: nil))
    #expect(driver.renewals == ["at-1"] && driver.items[1] == nil)
    driver.setCredentials(nil)
    #expect(driver.items[1] == [.ended(.signedOut)])
  }

  @Test("A device that the server does not know is enrolled again, and then connects")
  func deviceNotEnrolled() {
    var driver = RealtimeDriver.joined()
    driver.end(.closed(code: 4_401, reason: "device_not_enrolled"))
    #expect(driver.enrolments == ["dt-1"] && driver.renewals.isEmpty)
    driver.setCredentials(RealtimeDriver.credentials(device: "dt-2"))
    #expect(driver.connects.last?.credentials.device?.token == "dt-2")
    driver.end(.refused(status: 412, code: nil))
    #expect(driver.enrolments == ["dt-1", "dt-2"])
  }

  @Test(
    "1013 and 503: the server has too much to do; at least 2.5 s",
    arguments: [
      RealtimeMachine.LinkEnd.closed(code: 1_013, reason: ""), .refused(status: 503, code: .unavailable),
      .refused(status: 429, code: .rateLimited),
    ])
  func overloaded(end: RealtimeMachine.LinkEnd) {
    var driver = RealtimeDriver()
    driver.setCredentials(RealtimeDriver.credentials())
    driver.subscribe(1, "t")
    if case .closed = end { driver.open() }
    driver.end(end)
    #expect(driver.machine.nextDeadline! - driver.now >= .milliseconds(2_500))
    driver.pass(.seconds(5))
    #expect(driver.connects.count == 2)
  }

  @Test(
    "What is no frame, or nobody's, changes nothing",
    arguments: [
      "", "{", "[]", "null", #"{"type":"reply"}"#, #"{"type":"reply","id":99}"#,
      #"{"type":"reply","id":"1"}"#,
      #"{"type":"event","topic":"t"}"#, #"{"type":"event","topic":"other","event":"x"}"#,
      #"{"type":"error"}"#,
      #"{"type":"error","id":99,"error":{}}"#, #"{"type":"subscription_ended"}"#, #"{"type":"dance"}"#,
      #"{"id":1}"#,
      #"{"type":"subscription_ended","topic":"other","reason":"superseded"}"#, #"{"type":"reply","id":1e99}"#,
      "{\"type\":\"event\",\"topic\":\"t\",\"event\":\"\u{0}\"}",
    ])
  func garbage(text: String) {
    var driver = RealtimeDriver.joined()
    driver.receive(text)
    #expect(
      driver.items[1]?.count == 1 && driver.closed.isEmpty
        && driver.machine.phase == .open(1, since: driver.now))
  }

  @Test("Every prefix and every changed byte of a frame is read without a trap")
  func everyPrefix() {
    let frame =
      #"{"type":"error","id":12,"error":{"code":"x","status":409,"details":{"a":[1,null]}},"topic":"t"}"#
    let bytes = Array(frame.utf8)
    #expect(ReceivedFrame(frame) != nil)
    for count in 0..<bytes.count {
      #expect(ReceivedFrame(String(decoding: bytes[..<count], as: UTF8.self)) == nil)
      for byte in [UInt8(0), 0x22, 0x5b, 0x7d, 0x39] {
        var changed = bytes
        changed[count] = byte
        _ = ReceivedFrame(String(decoding: changed, as: UTF8.self))
      }
    }
    #expect(ReceivedFrame(String(repeating: "[", count: 100_000)) == nil)
    let long = "{\"type\":\"heartbeat\",\"x\":\"\(String(repeating: "x", count: ReceivedFrame.limit))\"}"
    let isRefused = ReceivedFrame(long) == nil
    #expect(isRefused)
  }

  @Test("Links of the past say nothing any more")
  func oldLinks() {
    var driver = RealtimeDriver.joined()
    driver.end(.failed)
    driver.pass(.seconds(2))
    driver.act { $0.received(1, #"{"type":"event","topic":"t","event":"x"}"#, at: $1) }
    driver.act { $0.linkEnded(1, .failed, at: $1) }
    driver.act { $0.linkOpened(1, at: $1) }
    #expect(driver.closed == [1] && driver.items[1]?.last == .interrupted)
    #expect(driver.machine.phase == .connecting(2))
  }
}

@Suite("Realtime: random histories")
struct RealtimeHistoryTests {
  @Test(
    "One socket at a time, a bounded window, each request answered once, nothing after the end, all joined when it is quiet",
    arguments: 0..<200)
  func histories(seed: UInt64) {
    var random = RandomSource(seed: seed)
    var driver = RealtimeDriver(seed: seed)
    var token = 1
    var subscriptions: Set<UInt64> = []
    var count: UInt64 = 0
    var requests: UInt64 = 0
    var openLink: UInt64?
    var read = 0
    var waiting: [Int] = []

    /// Takes what was sent since and checks where it went.
    func collect() {
      for (link, text) in driver.sent[read...] {
        #expect(link == openLink, "seed \(seed)")
        if let id = text.firstMatch(of: /"id":(\d+)/) { waiting.append(Int(id.1)!) }
      }
      read = driver.sent.count
      #expect(waiting.count <= RealtimeMachine.window)
    }
    func lose() {
      openLink = nil
      waiting = []
    }
    func check() {
      collect()
      if let link = openLink, driver.closed.contains(link) { lose() }
      for (id, items) in driver.items
      where items.contains(where: { if case .ended = $0 { true } else { false } }) {
        guard case .ended = items.last else {
          Issue.record("seed \(seed): something came after the end")
          return
        }
        subscriptions.remove(id)
      }
    }

    driver.setCredentials(RealtimeDriver.credentials(renewal: 1_000_000))
    for _ in 0..<400 {
      switch Int.random(in: 0..<12, using: &random) {
      case 0, 1:
        count += 1
        subscriptions.insert(count)
        driver.subscribe(count, "t\(Int.random(in: 0..<40, using: &random))")
      case 2:
        if let id = subscriptions.sorted().randomElement(using: &random) {
          subscriptions.remove(id)
          driver.act { $0.unsubscribe(id, at: $1) }
        }
      case 3:
        requests += 1
        driver.act { [requests] in $0.request(requests, .acknowledge(upTo: 1), at: $1) }
      case 4, 5:
        if case .connecting(let link) = driver.machine.phase {
          openLink = link
          driver.open()
        }
      case 6:
        if openLink != nil || Bool.random(using: &random), driver.machine.phase != .idle,
          !driver.connects.isEmpty
        {
          let codes: [UInt16] = [1_006, 1_013, 4_401, 4_408]
          driver.end(.closed(code: codes.randomElement(using: &random)!, reason: ""))
          lose()
        }
      case 7:
        token += 1
        driver.setCredentials(RealtimeDriver.credentials(token: "at-\(token)", renewal: 1_000_000))
      case 8: driver.pass(.milliseconds(Int.random(in: 0..<20_000, using: &random)))
      case 9:
        let user = "usr_\(Int.random(in: 1...12, using: &random) == 1 ? 2 : 1)"
        if user == "usr_2" {
          driver.setCredentials(RealtimeDriver.credentials(user, token: "at-x", renewal: 1_000_000))
          driver.setCredentials(RealtimeDriver.credentials(token: "at-\(token)", renewal: 1_000_000))
        }
      default:
        if !waiting.isEmpty, openLink != nil {
          let id = waiting.remove(at: Int.random(in: 0..<waiting.count, using: &random))
          driver.receive(
            Int.random(in: 0..<10, using: &random) == 0
              ? #"{"type":"error","id":\#(id),"error":{"code":"unavailable","status":503}}"#
              : #"{"type":"reply","id":\#(id)}"#)
        }
      }
      check()
    }
    // A good server from here on.
    for _ in 0..<400 {
      driver.pass(.milliseconds(500))
      check()
      if case .connecting(let link) = driver.machine.phase {
        openLink = link
        driver.open()
        check()
      }
      while let id = waiting.first {
        waiting.removeFirst()
        driver.receive(#"{"type":"reply","id":\#(id)}"#)
        check()
      }
    }
    for id in subscriptions {
      let last = driver.items[id]?.last { $0.isJoined || $0 == .interrupted }
      #expect(last?.isJoined == true, "seed \(seed) subscription \(id)")
    }
    #expect(driver.answers.count == Int(requests), "seed \(seed)")
    let links = driver.connects.map(\.link)
    #expect(links == links.sorted() && Set(links).count == links.count)
  }
}
