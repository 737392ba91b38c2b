import CPalbeCurl
import PalbeEventLoop
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeServerObservation
import PalbeUnits
import PalbeWebTokens

/// The thread of a `WebhookSender`.
struct WebhookLoop: ~Copyable {
  /// Attempts at once.
  static let parallelLimit = 16

  private let settings: WebhookSender.Settings
  private let inbox: WebhookInbox
  private let log: ServerLog
  private var queue: WebhookQueue
  /// Every address that events have gone to; a lane names one by its place.
  private var urls: [WebhookURL] = []
  private var random = SystemRandom.source()
  /// Attempts under way, by number.
  private var attempts: [UInt64: (delivery: WebhookQueue.Delivery, easy: UnsafeMutableRawPointer)] = [:]
  private var attemptCount: UInt64 = 0
  private var droppedCount = 0
  private var reportedAt = Instant.zero

  init(_ settings: WebhookSender.Settings, inbox: WebhookInbox, log: ServerLog) {
    self.settings = settings
    self.inbox = inbox
    self.log = log
    queue = WebhookQueue(capacity: settings.capacity, firstWait: settings.firstWait)
  }

  deinit {
    for attempt in attempts.values { palbe_curl_end(inbox.multi, attempt.easy) }
  }

  mutating func run() {
    var end = Instant.distantFuture
    while true {
      let now = MonotonicClock.now()
      if inbox.isStopping, end == .distantFuture { end = now + settings.farewell }
      takeNotices()
      guard now < end, !inbox.isStopping || queue.count > 0 else { break }
      startAttempts(at: now)
      var running: Int32 = 0
      curl_multi_perform(inbox.multi, &running)
      takeResults(at: MonotonicClock.now())
      reportDrops(at: now, isLast: false)
      wait(until: end)
    }
    droppedCount += queue.count
    reportDrops(at: MonotonicClock.now(), isLast: true)
  }

  private func wait(until end: Instant) {
    guard !inbox.isStopping || queue.count > 0 else { return }
    let now = MonotonicClock.now()
    var deadline = min(end, now + .seconds(10))
    if attempts.count < Self.parallelLimit, let next = queue.nextDeadline { deadline = min(deadline, next) }
    let milliseconds = max(0, (deadline - now).nanoseconds + 999_999) / 1_000_000
    curl_multi_poll(inbox.multi, nil, 0, Int32(clamping: milliseconds), nil)
  }

  // MARK: Events

  private mutating func takeNotices() {
    let content = inbox.take()
    guard let target = content.target else { return }
    droppedCount += content.droppedCount * target.urls.count
    let places = target.urls.map { place(of: $0) }
    for notice in content.notices {
      let body = LiveKit.Webhook(event(notice)).body
      for url in places {
        let lane = WebhookQueue.Lane(url: url, room: notice.room.name)
        if !queue.append(.init(lane: lane, event: notice.event.rawValue, body: body)) { droppedCount += 1 }
      }
    }
  }

  private mutating func place(of url: WebhookURL) -> Int {
    if let known = urls.firstIndex(of: url) { return known }
    urls.append(url)
    return urls.count - 1
  }

  private mutating func event(_ notice: RoomNotice) -> LiveKit.WebhookEvent {
    .with {
      $0.event = notice.event.rawValue
      $0.id = "EV_" + Self.identifier(using: &random)
      $0.createdAt = notice.createdAt
      $0.room = notice.room
      $0.participant = notice.participant
      $0.track = notice.track
      $0.roomEndReason = notice.endReason
    }
  }

  /// Twelve letters and digits, as LiveKit's other identifiers have.
  private static func identifier(using random: inout RandomSource) -> String {
    let alphabet = Array("23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".utf8)
    let letters = random.bytes(12).map { alphabet[Int($0) % alphabet.count] }
    return String(decoding: letters, as: UTF8.self)
  }

  // MARK: Attempts

  private mutating func startAttempts(at now: Instant) {
    while attempts.count < Self.parallelLimit, let delivery = queue.next(at: now) {
      attemptCount += 1
      guard let easy = start(delivery, number: attemptCount) else {
        _ = queue.failed(delivery.lane, isFinal: false, at: now)
        return
      }
      attempts[attemptCount] = (delivery, easy)
    }
  }

  private func start(_ delivery: WebhookQueue.Delivery, number: UInt64) -> UnsafeMutableRawPointer? {
    let webhook = LiveKit.Webhook(body: delivery.body)
    // Without one nobody is told any more, of what waits neither.
    guard let signer = inbox.signer else { return nil }
    let claims = webhook.claims(issuer: signer.keyName, at: WallClock.unixSeconds)
    let headers = [
      "Content-Type: " + LiveKit.Webhook.contentType, "User-Agent: " + LiveKit.Webhook.userAgent,
      "Authorization: " + SignedToken.text(Array(claims.utf8), secret: signer.secret),
      // An event is short: no question before it.
      "Expect:",
    ]
    return withCStrings(headers) { headers in
      palbe_curl_post(
        inbox.multi, urls[delivery.lane.url].text, headers.baseAddress, Int32(headers.count),
        delivery.body, delivery.body.count, Int(settings.timeout.nanoseconds / 1_000_000),
        settings.authorities, number)
    }
  }

  private mutating func takeResults(at now: Instant) {
    var number: UInt64 = 0
    var status = 0
    var reason: UnsafePointer<CChar>?
    while let easy = palbe_curl_done(inbox.multi, &number, &status, &reason) {
      palbe_curl_end(inbox.multi, easy)
      guard let delivery = attempts.removeValue(forKey: number)?.delivery else { continue }
      if reason == nil, (200..<300).contains(status) {
        queue.delivered(delivery.lane)
        continue
      }
      let words = reason.map { String(cString: $0) } ?? "status \(status)"
      // What the receiver does not want now it will not want later (RFC 9110 §15.5); but it may be busy.
      let isFinal = reason == nil && (400..<500).contains(status) && ![408, 425, 429].contains(status)
      let failure = queue.failed(delivery.lane, isFinal: isFinal, at: now)
      log.write(
        failure == .givenUp ? .warning : .info,
        failure == .givenUp ? "webhook given up" : "webhook failed, again later",
        [
          ("event", delivery.event), ("url", urls[delivery.lane.url].label), ("reason", words),
          ("attempt", "\(delivery.failureCount + 1)"),
        ])
    }
  }

  private mutating func reportDrops(at now: Instant, isLast: Bool) {
    guard droppedCount > 0, isLast || now - reportedAt >= .seconds(1) else { return }
    reportedAt = now
    log.write(.warning, "webhooks dropped", [("count", "\(droppedCount)")])
    droppedCount = 0
  }
}

/// Calls `body` with C strings that live as long as the call.
private func withCStrings<R>(
  _ strings: [String], _ body: (UnsafeBufferPointer<UnsafePointer<CChar>?>) -> R
) -> R {
  let copies = strings.map { $0.utf8CString }
  return withPointers(copies[...], []) { $0.withUnsafeBufferPointer(body) }
}

private func withPointers<R>(
  _ strings: ArraySlice<ContiguousArray<CChar>>, _ pointers: [UnsafePointer<CChar>?],
  _ body: ([UnsafePointer<CChar>?]) -> R
) -> R {
  guard let first = strings.first else { return body(pointers) }
  return first.withUnsafeBufferPointer {
    withPointers(strings.dropFirst(), pointers + [$0.baseAddress], body)
  }
}
