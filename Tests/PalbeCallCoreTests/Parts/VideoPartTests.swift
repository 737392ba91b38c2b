import PalbeRTP
import PalbeUnits
import Testing

@testable import PalbeCallCore

@Suite struct VideoPartTests {
  @Test("A frame follows only on its predecessor or as a key frame, never behind a later one")
  func frameChain() {
    var chain = FrameChain()
    let serials = (0..<8).map { _ in chain.number() }
    #expect(serials == Array(0..<8))
    #expect(chain.judge(0, isKeyFrame: false) == .orphan)
    #expect(chain.judge(1, isKeyFrame: true) == .decodable)
    #expect(chain.judge(2, isKeyFrame: false) == .decodable)
    #expect(chain.judge(4, isKeyFrame: false) == .orphan)
    #expect(chain.judge(3, isKeyFrame: false) == .decodable)
    #expect(chain.judge(3, isKeyFrame: true) == .stale)
    chain.breakOff()
    #expect(chain.judge(4, isKeyFrame: false) == .orphan)
    #expect(chain.judge(6, isKeyFrame: true) == .decodable)
    #expect(chain.judge(5, isKeyFrame: false) == .stale)
    #expect(chain.judge(7, isKeyFrame: false) == .decodable)
  }

  @Test(
    "LiveKit protocol §4 (4): requests to the encoder are coalesced, and a key frame under way meets them")
  func throttle() {
    var throttle = KeyFrameThrottle()
    let now = Instant(nanoseconds: 5_000_000_000)
    throttle.request()
    throttle.request()
    #expect(throttle.poll(at: now) && !throttle.poll(at: now))
    throttle.request()
    #expect(throttle.poll(at: now + .milliseconds(100)) == false)
    throttle.sentKeyFrame()
    #expect(throttle.nextDeadline == nil && !throttle.poll(at: now + .seconds(1)))
    throttle.request()
    #expect(throttle.poll(at: now + .seconds(1)) == true)
  }

  @Test("RFC 3550 A.3: a stream counts each packet once, whatever comes twice or late")
  func streamReceiver() {
    var stream = StreamReceiver(ssrc: SSRC(1), clockRate: 90_000, repairTime: .milliseconds(400))
    func receive(_ number: UInt16, isRepair: Bool = false) -> Bool {
      let header = RTPHeader(
        payloadType: PayloadType(96), sequenceNumber: SequenceNumber(number), timestamp: RTPTimestamp(0),
        ssrc: SSRC(1))
      return stream.received(header, payloadByteCount: 10, isRepair: isRepair, at: .zero) != nil
    }
    #expect(receive(65_534) && receive(65_533) && receive(1))
    #expect(!receive(1) && !receive(65_534))
    #expect(stream.packetCount == 3 && stream.lostCount == 2)
    #expect(
      stream.pollMissing(at: .zero + .milliseconds(10), roundTrip: .milliseconds(20)).map(\.rawValue) == [
        65_535, 0,
      ])
    #expect(receive(65_535, isRepair: true) && receive(0) && !receive(65_535))
    #expect(stream.packetCount == 5 && stream.lostCount == 0 && stream.byteCount == 50)
    #expect(receive(2_000))
    #expect(!receive(900), "older than the window")
    #expect(receive(1_100))
  }

  @Test("What waits for a key is found by its tag, and given up after its time")
  func waitingMarks() {
    var marks = WaitingMarks()
    for serial in 0..<3 {
      marks.add(
        .init(
          tag: marks.tag(), track: RemoteTrackID(0), serial: UInt64(serial), timestamp: RTPTimestamp(0),
          arrival: .zero + .milliseconds(100) * serial))
    }
    #expect(marks.take(1)?.serial == 1)
    #expect(marks.take(1) == nil)
    #expect(marks.nextDeadline == Instant.zero + WaitingMarks.patience)
    #expect(marks.expire(at: .zero + .milliseconds(500)).isEmpty)
    #expect(marks.expire(at: .zero + .milliseconds(600)).map(\.serial) == [0])
    #expect(marks.expire(at: .zero + .seconds(1)).map(\.serial) == [2])
    #expect(marks.nextDeadline == nil)
  }

  @Test("Failures are reported when they begin and once a second while they go on")
  func failureReport() {
    var report = FailureReport()
    let now = Instant(nanoseconds: 5_000_000_000)
    #expect(report.poll(at: now) == nil)
    report.add()
    #expect(report.poll(at: now) == 1)
    report.add(3)
    #expect(report.poll(at: now + .milliseconds(900)) == nil)
    #expect(report.poll(at: now + .seconds(1)) == 4)
    #expect(report.nextDeadline == nil)
  }

  @Test("The queue of packets is a ring of bounded size")
  func packetQueue() {
    var queue = PacketQueue()
    for round in 0..<3 {
      for number in 0..<PacketQueue.capacity + 10 {
        queue.push(.init(track: .camera, sequenceNumber: SequenceNumber(UInt16(number))))
      }
      #expect(queue.count == PacketQueue.capacity && queue.dropped == UInt64(10 * (round + 1)))
      for number in 0..<PacketQueue.capacity {
        #expect(queue.pop()?.sequenceNumber.rawValue == UInt16(number))
      }
      #expect(queue.pop() == nil)
    }
  }
}
