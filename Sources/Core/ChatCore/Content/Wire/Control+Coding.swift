import PalbeProtobuf
import PalbeUnits
import PalbeWire

extension ControlWire {
  init(_ body: ControlBody) throws(ContentError) {
    self.init()
    switch body {
    case .renamed(let name):
      let name = try StaticField("name").text(name, to: ContentLimits.nameByteCount)
      renamed = .with { $0.name = name }
    case .timer(let expiry):
      let expiry = try expiry.map { expiry throws(ContentError) in try ExpiryWire(expiry) }
      timer = .with { $0.expiry = expiry }
    case .timerAcknowledged(let control): timerAcknowledged = .with { $0.target = control.bytes }
    case .leaving: leaving = LeavingWire()
    case .profile(let value): profile = try ProfileWire(value)
    }
  }

  /// Nil for a control of a newer version.
  func body() throws(ContentError) -> ControlBody? {
    let newer = try unknownAlternatives(Self.alternatives, in: unknownFields)
    var found: [ControlBody] = []
    if let renamed {
      found.append(.renamed(try StaticField("name").text(renamed.name, to: ContentLimits.nameByteCount)))
    }
    if let timer {
      found.append(.timer(try timer.expiry.map { expiry throws(ContentError) in try expiry.value() }))
    }
    if let timerAcknowledged {
      found.append(.timerAcknowledged(try StaticField("target").id(timerAcknowledged.target)))
    }
    if leaving != nil { found.append(.leaving) }
    if let profile { found.append(.profile(try profile.value())) }
    guard found.count + newer.count <= 1 else { throw .severalContents }
    if found.isEmpty, newer.isEmpty { throw .missing("control") }
    return found.first
  }
}

extension ProfileWire {
  init(_ profile: GroupProfile) throws(ContentError) {
    name = try StaticField("name").text(profile.name, to: ContentLimits.nameByteCount)
    nameVersion = VersionWire(profile.nameVersion)
    timer = try profile.timer.map { expiry throws(ContentError) in try ExpiryWire(expiry) }
    timerVersion = VersionWire(profile.timerVersion)
  }

  func value() throws(ContentError) -> GroupProfile {
    GroupProfile(
      name: try StaticField("name").text(name, to: ContentLimits.nameByteCount),
      nameVersion: try nameVersion?.value() ?? .initial,
      timer: try timer.map { expiry throws(ContentError) in try expiry.value() },
      timerVersion: try timerVersion?.value() ?? .initial)
  }
}

extension VersionWire {
  /// Nil for that of what a group was made with, which is not written.
  init?(_ version: ProfileVersion) {
    if version == .initial { return nil }
    (epoch, seq, control) = (version.epoch, version.seq, version.control?.bytes ?? [])
  }

  func value() throws(ContentError) -> ProfileVersion {
    guard seq >= 0 else { throw .invalid("seq") }
    return ProfileVersion(
      epoch: epoch, seq: seq, control: control.isEmpty ? nil : try StaticField("control").id(control))
  }
}
