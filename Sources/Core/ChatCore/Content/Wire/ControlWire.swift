import PalbeProtobuf

/// `Control`. One of its fields below 16 is there; those that have no name yet belong to newer versions.
struct ControlWire: ProtobufMessage {
  static let alternatives: ClosedRange<UInt32> = 1...15

  var renamed: RenamedWire?
  var timer: TimerWire?
  var timerAcknowledged: TargetWire?
  var leaving: LeavingWire?
  var profile: ProfileWire?
  var unknownFields: [UInt8] = []

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "renamed", &renamed)
    try f.field(2, "timer", &timer)
    try f.field(3, "timer_acknowledged", &timerAcknowledged)
    try f.field(4, "leaving", &leaving)
    try f.field(5, "profile", &profile)
    try f.unknown(&unknownFields)
  }
}

/// `Renamed`.
struct RenamedWire: ProtobufMessage {
  var name = ""

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) { try f.field(1, "name", &name) }
}

/// `Timer`.
struct TimerWire: ProtobufMessage {
  var expiry: ExpiryWire?

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) { try f.field(1, "expiry", &expiry) }
}

/// `Leaving`: that it is there says all.
struct LeavingWire: ProtobufMessage {
  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {}
}

/// `Profile`, of the control and of the sealed profile.
struct ProfileWire: ProtobufMessage {
  var name: String?
  var nameVersion: VersionWire?
  var timer: ExpiryWire?
  var timerVersion: VersionWire?

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "name", &name)
    try f.field(2, "name_version", &nameVersion)
    try f.field(3, "timer", &timer)
    try f.field(4, "timer_version", &timerVersion)
  }
}

/// `Version`; absent it is that of what a group was made with.
struct VersionWire: ProtobufMessage {
  var epoch: UInt64 = 0
  var seq: Int64 = 0
  var control: [UInt8] = []

  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "epoch", &epoch)
    try f.field(2, "seq", &seq)
    try f.field(3, "control", &control)
  }
}
