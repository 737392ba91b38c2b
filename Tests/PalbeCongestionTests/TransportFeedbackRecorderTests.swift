import PalbeCongestion
import PalbeRTP
import PalbeUnits
import PalbeWire
import Testing

@Suite("Transport feedback recorder")
struct TransportFeedbackRecorderTests {
  func at(_ microseconds: Int) -> Instant {
    Instant(nanoseconds: 5_000_000_000) + .microseconds(microseconds)
  }

  /// All reports due, read back.
  func reports(_ recorder: inout TransportFeedbackRecorder, at now: Instant) throws -> [TransportFeedback] {
    var reports: [TransportFeedback] = []
    while let bytes = recorder.poll(at: now, sender: SSRC(1), media: SSRC(2)) {
      #expect(bytes.count <= 1_200)
      var reader = RTCPReader(bytes.span)
      guard case .transportFeedback(let feedback) = try reader.next() else { break }
      reports.append(feedback)
    }
    return reports
  }

  @Test("transport-wide-cc-01: reports every 100 ms what arrived, at what time, and what did not")
  func report() throws {
    var recorder = TransportFeedbackRecorder()
    #expect(recorder.nextDeadline == nil)
    for (number, time) in [(65_534, 0), (65_535, 1_000), (1, 3_250), (2, 3_000)] as [(UInt16, Int)] {
      recorder.record(transportSequence: number, at: at(time))
    }
    #expect(recorder.nextDeadline == at(100_000))
    #expect(try reports(&recorder, at: at(99_999)).isEmpty)
    let sent = try reports(&recorder, at: at(100_000))
    #expect(sent.count == 1)
    let feedback = try unwrapped(sent.first)
    #expect(feedback.sender == SSRC(1) && feedback.media == SSRC(2) && feedback.feedbackCount == 0)
    #expect(feedback.baseSequence == 65_534 && feedback.statusCount == 5)
    #expect(feedback.arrivals.map(\.sequence) == [65_534, 65_535, 1, 2])
    #expect(
      feedback.arrivals.map { feedback.arrivalTime(of: $0) }
        == [at(0), at(1_000), at(3_250), at(3_000)])
    #expect(recorder.nextDeadline == nil)
    #expect(try reports(&recorder, at: at(500_000)).isEmpty)
  }

  @Test("The next report goes on where the last one ended, and names what was lost in between")
  func continues() throws {
    var recorder = TransportFeedbackRecorder()
    recorder.record(transportSequence: 10, at: at(0))
    #expect(try reports(&recorder, at: at(100_000)).count == 1)
    recorder.record(transportSequence: 14, at: at(150_000))
    let second = try unwrapped(try reports(&recorder, at: at(250_000)).first)
    #expect(second.baseSequence == 11 && second.statusCount == 4 && second.feedbackCount == 1)
    #expect(second.arrivals.map(\.sequence) == [14])
  }

  @Test("A packet reported lost that comes late is reported again; a duplicate is not")
  func late() throws {
    var recorder = TransportFeedbackRecorder()
    for number in [10, 12] as [UInt16] { recorder.record(transportSequence: number, at: at(0)) }
    _ = try reports(&recorder, at: at(100_000))
    recorder.record(transportSequence: 12, at: at(110_000))
    #expect(recorder.nextDeadline == nil)
    recorder.record(transportSequence: 11, at: at(120_000))
    let again = try unwrapped(try reports(&recorder, at: at(220_000)).first)
    #expect(again.baseSequence == 11 && again.arrivals.map(\.sequence) == [11, 12])
    recorder.record(transportSequence: 9, at: at(230_000))
    let before = try unwrapped(try reports(&recorder, at: at(330_000)).first)
    #expect(before.baseSequence == 9)
  }

  @Test("A long list, a long pause and a long gap go into several reports, and nothing is left out")
  func splits() throws {
    var recorder = TransportFeedbackRecorder()
    var expected: [UInt16] = []
    for step in 0..<1_800 where step % 7 != 3 {
      expected.append(60_000 &+ UInt16(step))
      recorder.record(
        transportSequence: 60_000 &+ UInt16(step), at: at(step * 20 + (step > 900 ? 60_000_000 : 0)))
    }
    let all = try reports(&recorder, at: at(70_000_000))
    #expect(all.count == 4)
    #expect(all.flatMap { $0.arrivals.map(\.sequence) } == expected)
    #expect(all.map(\.feedbackCount) == (0..<all.count).map { UInt8($0) })
    for (one, next) in zip(all, all.dropFirst()) {
      #expect(one.baseSequence &+ one.statusCount == next.baseSequence)
    }
  }

  @Test("The ring is bounded: a jump drops what was not reported")
  func bounded() throws {
    var recorder = TransportFeedbackRecorder()
    recorder.record(transportSequence: 0, at: at(0))
    recorder.record(transportSequence: 30_000, at: at(10))
    recorder.record(transportSequence: 20_000, at: at(20))
    let all = try reports(&recorder, at: at(200_000))
    #expect(all.flatMap { $0.arrivals.map(\.sequence) } == [30_000])
  }

  @Test("Arrivals are exact to a quarter millisecond under random loss and reordering", arguments: 0..<20)
  func random(seed: Int) throws {
    var random = RandomSource(seed: UInt64(seed))
    var recorder = TransportFeedbackRecorder()
    var truth: [UInt16: Instant] = [:]
    var reported: [UInt16: Instant] = [:]
    var now = at(0)
    for step in 0..<3_000 {
      now += .microseconds(Int.random(in: 50...4_000, using: &random))
      let number = 65_000 &+ UInt16(step)
      if Int.random(in: 0..<10, using: &random) > 0 {
        let arrival = now - .microseconds(Int.random(in: 0...40, using: &random))
        recorder.record(transportSequence: number, at: arrival)
        truth[number] = arrival
      }
      if let deadline = recorder.nextDeadline, deadline <= now {
        for feedback in try reports(&recorder, at: now) {
          for arrival in feedback.arrivals { reported[arrival.sequence] = feedback.arrivalTime(of: arrival) }
        }
      }
    }
    for feedback in try reports(&recorder, at: now + .seconds(1)) {
      for arrival in feedback.arrivals { reported[arrival.sequence] = feedback.arrivalTime(of: arrival) }
    }
    #expect(reported.count == truth.count)
    for (number, time) in truth {
      let error = try unwrapped(reported[number]) - time
      #expect(error.nanoseconds <= 0 && error.nanoseconds > -250_000)
    }
  }
}

/// `#require` for calls that mutate, which the macro cannot take apart.
func unwrapped<T>(_ value: T?) throws -> T { try #require(value) }
