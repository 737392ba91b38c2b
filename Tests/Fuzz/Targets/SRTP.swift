import PalbeSRTP
import PalbeUnits
import PalbeWire

extension FuzzTarget {
  /// The first byte chooses profile, RTP or RTCP, and what the rest is: a packet from the network, which must be
  /// refused without a trace, or a plain one, which must come back from protection.
  static let srtpUnprotect = FuzzTarget(name: "srtp-unprotect") { bytes in
    guard let mode = bytes.first else { return }
    let profile = SRTPProfile.allCases[Int(mode & 3) % 3]
    let isControl = mode & 4 != 0
    let key = [UInt8](repeating: 1, count: profile.masterKeyByteCount)
    let salt = [UInt8](repeating: 2, count: profile.masterSaltByteCount)
    guard
      var session = try? SRTPSession(
        profile: profile, localMasterKey: key.span, localMasterSalt: salt.span, remoteMasterKey: key.span,
        remoteMasterSalt: salt.span)
    else { preconditionFailure("a session with keys of the right length") }
    let plain = Array(bytes[1...])
    var buffer = plain + [UInt8](repeating: 0, count: 20)
    var span = buffer.mutableSpan
    var count = plain.count
    if mode & 8 != 0 {
      let protected =
        isControl
        ? try? session.protectRTCP(&span, count: count) : try? session.protectRTP(&span, count: count)
      guard let protected else { return }
      count = protected
    }
    let opened =
      isControl
      ? try? session.unprotectRTCP(&span, count: count) : try? session.unprotectRTP(&span, count: count)
    if mode & 8 != 0 {
      precondition(opened == plain.count, "a protected packet does not open")
      precondition(Array(buffer[..<plain.count]) == plain, "a protected packet opens to something else")
    } else {
      precondition(opened == nil && session.remoteSourceCount == 0, "a forged packet was accepted")
    }
  }
}
