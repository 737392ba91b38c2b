import PalbeUnits

/// The stream and track a sending section belongs to (RFC 8830): `a=msid:stream track`.
public struct MediaStreamID: Hashable, Sendable {
  /// The stream; `-` for none. LiveKit's servers write `PA_…|TR_…`.
  public var stream: String
  /// The track; empty where nothing is said. LiveKit's clients write the `cid` of their AddTrackRequest.
  public var track: String

  /// A stream and a track, both without spaces.
  public init(stream: String, track: String) {
    self.stream = stream
    self.track = track
  }
}

/// What `a=ssrc` lines say of one source (RFC 5576).
public struct MediaSource: Equatable, Sendable {
  /// The source.
  public var ssrc: SSRC
  /// Its canonical name.
  public var cname: String?
  /// The older place of the msid; sections carry it themselves now.
  public var msid: MediaStreamID?

  /// A source to announce.
  public init(ssrc: SSRC, cname: String? = nil, msid: MediaStreamID? = nil) {
    self.ssrc = ssrc
    self.cname = cname
    self.msid = msid
  }
}

/// Sources that belong together: `FID` is a stream and its retransmissions, `SIM` are simulcast layers (RFC
/// 5576 §4.2).
public struct MediaSourceGroup: Equatable, Sendable {
  /// `FID`, `SIM`, `FEC-FR`.
  public var semantics: String
  /// The sources, in order.
  public var ssrcs: [SSRC]

  /// A group to announce.
  public init(_ semantics: String, _ ssrcs: [SSRC]) {
    self.semantics = semantics
    self.ssrcs = ssrcs
  }
}

extension MediaSection {
  /// The streams and tracks of this section. We write exactly one in a section that sends: clients crash on
  /// two.
  public var msids: [MediaStreamID] {
    get { attributes.values("msid").compactMap { MediaStreamID(parsing: $0) } }
    set { attributes.replace("msid", with: newValue.map(\.value)) }
  }

  /// The sources in the order in which they are first named.
  public var sources: [MediaSource] {
    get {
      var found: [MediaSource] = []
      var places: [SSRC: Int] = [:]
      for value in attributes.values("ssrc") {
        guard let (word, rest) = splitWord(value), let number: UInt32 = decimal(word) else { continue }
        let ssrc = SSRC(number)
        let place = places[ssrc] ?? found.count
        if place == found.count {
          found.append(MediaSource(ssrc: ssrc))
          places[ssrc] = place
        }
        if rest.hasPrefix("cname:") { found[place].cname = String(rest.dropFirst(6)) }
        if rest.hasPrefix("msid:") { found[place].msid = MediaStreamID(parsing: String(rest.dropFirst(5))) }
      }
      return found
    }
    set {
      var lines: [String] = []
      for source in newValue {
        if let cname = source.cname { lines.append("\(source.ssrc.rawValue) cname:\(cname)") }
        if let msid = source.msid { lines.append("\(source.ssrc.rawValue) msid:\(msid.value)") }
      }
      attributes.replace("ssrc", with: lines)
    }
  }

  /// The groups of sources.
  public var sourceGroups: [MediaSourceGroup] {
    get {
      attributes.values("ssrc-group").compactMap { value in
        let words = value.split(separator: " ")
        guard words.count >= 2 else { return nil }
        let numbers = words.dropFirst().compactMap { decimal($0) as UInt32? }
        guard numbers.count == words.count - 1 else { return nil }
        return MediaSourceGroup(String(words[0]), numbers.map { SSRC($0) })
      }
    }
    set {
      attributes.replace(
        "ssrc-group",
        with: newValue.map { ([$0.semantics] + $0.ssrcs.map { String($0.rawValue) }).joined(separator: " ") })
    }
  }

  /// Announces what this side sends here: one msid, the source, and the source of its retransmissions if
  /// there is one.
  public mutating func setSending(_ msid: MediaStreamID, ssrc: SSRC, rtx: SSRC? = nil, cname: String) {
    msids = [msid]
    sourceGroups = rtx.map { [MediaSourceGroup("FID", [ssrc, $0])] } ?? []
    sources = ([ssrc] + (rtx.map { [$0] } ?? [])).map { MediaSource(ssrc: $0, cname: cname) }
  }
}

extension MediaStreamID {
  init?(parsing value: String) {
    let words = value.split(separator: " ")
    guard let stream = words.first, words.count <= 2 else { return nil }
    self.init(stream: String(stream), track: words.count == 2 ? String(words[1]) : "")
  }

  var value: String { track.isEmpty ? stream : stream + " " + track }
}
