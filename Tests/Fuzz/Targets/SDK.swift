import PalbeUnits

@testable import Palbase

extension FuzzTarget {
  /// An answer's head, line by line, and its body as a refusal: what is shown is bounded and one line.
  static let sdkAnswer = FuzzTarget(name: "sdk-answer") { bytes in
    var head = AnswerHead()
    for line in bytes.split(separator: 0x0a, omittingEmptySubsequences: false) {
      _ = Array(line).withUnsafeBytes { head.append($0) }
    }
    for status in [400, 404, 429, 503] {
      let failure = ServerFailure(status: status, headers: head.fields, body: bytes)
      demand(failure.status == status, "the status line counts")
      demand(failure.message.unicodeScalars.count <= 1_024, "an endless message")
      demand(!failure.message.utf8.contains { $0 < 32 }, "a message that moves the cursor")
      demand((1...64).contains(failure.code.rawValue.utf8.count), "a code without bounds")
      demand(
        failure.retryAfter.map { $0 >= .zero && $0 <= .seconds(86_400) } ?? true, "a wait without bounds")
    }
  }

  /// The input as a server's behaviour: 0xff parts it, a first byte says what happens, the rest is a frame. There is one
  /// connection at a time, nothing is sent on one that is gone, and each request is answered once.
  static let sdkRealtime = FuzzTarget(name: "sdk-realtime") { bytes in
    var machine = RealtimeMachine(random: RandomSource(seed: 1))
    var now = Instant(nanoseconds: 1_000_000_000)
    var link: UInt64?
    var requests: Set<UInt64> = []
    var count: UInt64 = 0
    var device = DeviceCredential(deviceId: "mdv_1", token: "d")
    func credentials(_ token: UInt8) -> RealtimeMachine.Credentials {
      RealtimeMachine.Credentials(
        userId: token > 250 ? "usr_2" : "usr_1", accessToken: "\(token)", renewal: now + .seconds(Int(token)),
        device: token == 0 ? nil : device)
    }
    func drain() {
      while let action = machine.pollAction() {
        switch action {
        case .connect(let id, _):
          demand(link == nil, "two connections")
          link = id
        case .send(let id, _): demand(link == id, "sent on a connection that is gone")
        case .close(let id): if link == id { link = nil }
        case .answer(let id, _): demand(requests.remove(id) != nil, "answered twice")
        case .enrol, .markRevoked, .renewToken, .deliver: break
        }
      }
    }
    machine.setCredentials(credentials(1), at: now)
    for part in bytes.split(separator: 0xff).prefix(200) {
      let text = String(decoding: part.dropFirst(), as: UTF8.self)
      let value = part.dropFirst().first ?? 0
      count += 1
      switch part[part.startIndex] % 10 {
      case 0: machine.subscribe(count, to: text, at: now)
      case 1: machine.unsubscribe(UInt64(value), at: now)
      case 2:
        requests.insert(count)
        machine.request(count, .acknowledge(upTo: Int64(value)), at: now)
      case 3: if case .connecting(let id) = machine.phase { machine.linkOpened(id, at: now) }
      case 4:
        if let id = link {
          link = nil
          machine.linkEnded(id, .closed(code: 4_400 + UInt16(value % 10), reason: text), at: now)
        }
      case 5: machine.setCredentials(credentials(value), at: now)
      case 6:
        now += .seconds(Int(value))
        machine.handleTimeout(at: now)
      case 7: device.token = text
      default: if let id = link { machine.received(id, text, at: now) }
      }
      drain()
    }
    machine.setCredentials(nil, at: now)
    drain()
    demand(requests.isEmpty && link == nil, "something is left of a person who signed out")
  }
}
