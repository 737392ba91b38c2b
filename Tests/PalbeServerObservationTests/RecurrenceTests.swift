import PalbeUnits
import Testing

@testable import PalbeServerObservation

@Suite("What goes wrong again and again")
struct RecurrenceTests {
  @Test("is logged when it begins, and then once a minute with how often it was")
  func intervals() {
    var recurrence = Recurrence()
    let start = Instant(nanoseconds: 5)
    #expect(recurrence.note(at: start) == 1)
    for second in 1..<60 { #expect(recurrence.note(at: start + .seconds(second)) == nil) }
    #expect(recurrence.note(at: start + .seconds(60)) == 60)
    #expect(recurrence.note(3, at: start + .seconds(61)) == nil)
    // After a quiet time those of before are told too.
    #expect(recurrence.note(at: start + .seconds(600)) == 4)
  }
}
