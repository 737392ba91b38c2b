import CPalbeOpenSSL
import PalbeUnits

/// When a flight is sent again.
///
/// OpenSSL 3.0 keeps the time of the next retransmission in the connection and compares it with the wall clock. It
/// hands its BIO a pointer to that field whenever it starts or stops the timer. We put the field out of the wall
/// clock's reach, keep the deadline in the caller's time instead, and put the field into the past when that deadline has come:
/// OpenSSL still decides what to send again, a test in virtual time needs no waiting, and a step of the wall clock
/// does no harm. `isCallers` is found out, not assumed: a later OpenSSL passes a copy, and then its own clock rules.
@safe struct RetransmitTimer {
  /// The first retransmission; each further one takes twice as long.
  static let first = TimeDelta.milliseconds(100)
  /// The longest time between two of them.
  static let longest = TimeDelta.seconds(1)
  /// A time in seconds since 1970 that no clock reaches, and whose distance from now fits in microseconds.
  private static let never = 1 << 40

  /// The caller's time, set before every call into OpenSSL.
  var now = Instant.zero
  /// When the present flight is sent again; nil while the timer does not run.
  private(set) var deadline: Instant?
  private var interval = Self.first
  private var field: UnsafeMutablePointer<timeval>?
  /// Whether `field` is the connection's own; nil until the timer first ran.
  private(set) var isCallers: Bool?

  init() {}

  /// OpenSSL started the timer, or stopped it by setting the field to zero.
  mutating func change(_ field: UnsafeMutablePointer<timeval>) {
    guard isCallers != false else { return }
    unsafe self.field = field
    if unsafe field.pointee.tv_sec == 0 && field.pointee.tv_usec == 0 {
      deadline = nil
      interval = Self.first
    } else {
      deadline = now + interval
      unsafe field.pointee.tv_sec = Self.never
      unsafe field.pointee.tv_usec = 0
    }
  }

  /// To be called after each call into OpenSSL: sees whether the field that was set is the one OpenSSL looks at.
  mutating func probe(_ connection: OpaquePointer) {
    guard isCallers == nil, deadline != nil else { return }
    isCallers = unsafe palbe_dtls_timeout(connection) > Int64(Self.never / 2) * 1_000_000
    if isCallers == false { unsafe field = nil }
  }

  /// Leaves the time to OpenSSL, for a test of that path.
  mutating func leaveToOpenSSL() { isCallers = false }

  /// When to call `expire`, whoever's clock it is.
  func nextDeadline(_ connection: OpaquePointer) -> Instant? {
    guard isCallers == false else { return deadline }
    let left = unsafe palbe_dtls_timeout(connection)
    return left < 0 ? nil : now + .microseconds(Int(left))
  }

  /// Makes OpenSSL see that the time has come; false while it has not.
  mutating func expire() -> Bool {
    guard isCallers == true, let field = unsafe field else { return isCallers == false }
    guard let deadline, deadline <= now else { return false }
    interval = min(interval * 2, Self.longest)
    unsafe field.pointee.tv_sec = 1
    return true
  }

  /// For `DTLS_set_timer_cb`: the same times on OpenSSL's clock, in microseconds; `last` is 0 for the first.
  static func next(after last: UInt32) -> UInt32 {
    last == 0 ? UInt32(first.wholeMicroseconds) : min(last &* 2, UInt32(longest.wholeMicroseconds))
  }
}
