import PalbeLiveKit
import PalbeUnits

/// Who is in the room and what they publish, as signaling tells.
struct Roster: Sendable {
  struct Member: Sendable {
    var sid: String
    var version: UInt32
    var tracks: [String: LiveKit.TrackInfo] = [:]
    var audioMuted = true
    var videoEnabled = false
  }

  enum Change: Hashable, Sendable {
    case connected(identity: String)
    case disconnected(identity: String)
    case updated(identity: String, audioMuted: Bool, videoEnabled: Bool)
  }

  static let memberLimit = 4_096
  static let trackLimit = 64

  /// Others, by identity.
  private(set) var members: [String: Member] = [:]
  private var identities: [String: String] = [:]
  private var owners: [String: String] = [:]
  private let localIdentity: String
  private(set) var localSid = ""

  init(localIdentity: String) { self.localIdentity = localIdentity }

  /// Our own sid, from the join response.
  mutating func setLocal(sid: String) { localSid = sid }

  /// Takes up what is said of one participant.
  mutating func update(_ info: LiveKit.ParticipantInfo) -> [Change] {
    guard !info.identity.isEmpty, info.identity != localIdentity else { return [] }
    if let known = members[info.identity], known.sid == info.sid, info.version < known.version { return [] }
    if info.state == .disconnected {
      // The end of an older session of somebody who is back is no news.
      guard let known = members[info.identity], info.sid.isEmpty || known.sid == info.sid else { return [] }
      remove(info.identity)
      return [.disconnected(identity: info.identity)]
    }
    var changes: [Change] = []
    if let known = members[info.identity], known.sid != info.sid {
      remove(info.identity)
      changes.append(.disconnected(identity: info.identity))
    }
    var member = members[info.identity]
    if member == nil {
      guard members.count < Self.memberLimit else { return changes }
      member = Member(sid: info.sid, version: info.version)
      identities[info.sid] = info.identity
      changes.append(.connected(identity: info.identity))
    }
    guard var member else { return changes }
    member.version = info.version
    setTracks(info.tracks, of: &member, identity: info.identity)
    let audioMuted = !member.tracks.values.contains { $0.type == .audio && !$0.muted }
    let videoEnabled = member.tracks.values.contains { $0.type == .video && !$0.muted }
    if audioMuted != member.audioMuted || videoEnabled != member.videoEnabled {
      member.audioMuted = audioMuted
      member.videoEnabled = videoEnabled
      changes.append(
        .updated(identity: info.identity, audioMuted: audioMuted, videoEnabled: videoEnabled))
    }
    members[info.identity] = member
    return changes
  }

  /// A track of somebody's, and whose; nil when signaling has not named it, or not any more.
  func track(_ sid: String) -> (identity: String, info: LiveKit.TrackInfo)? {
    guard let identity = owners[sid], let info = members[identity]?.tracks[sid] else { return nil }
    return (identity, info)
  }

  /// Whose sid this is, our own included.
  func identity(sid: String) -> String? { sid == localSid ? localIdentity : identities[sid] }

  private mutating func setTracks(
    _ tracks: [LiveKit.TrackInfo], of member: inout Member, identity: String
  ) {
    for sid in member.tracks.keys { owners[sid] = nil }
    member.tracks = [:]
    for track in tracks.prefix(Self.trackLimit) where !track.sid.isEmpty {
      // A sid is its first owner's: nobody can put another's track under their name.
      guard owners[track.sid] == nil else { continue }
      member.tracks[track.sid] = track
      owners[track.sid] = identity
    }
  }

  private mutating func remove(_ identity: String) {
    guard let member = members.removeValue(forKey: identity) else { return }
    identities[member.sid] = nil
    for sid in member.tracks.keys { owners[sid] = nil }
  }
}
