import PalbeSDP
import PalbeTestKit

/// Offers of the unmodified PyPI `livekit` 1.2.1 client, captured with a throw-away server.
enum Fixture: String, CaseIterable, Sendable {
  /// In the join request.
  case join = "livekit-1.2.1-join"
  /// After an audio and a video track without simulcast were added.
  case publish = "livekit-1.2.1-publish"
  /// And then one with two simulcast layers.
  case simulcast = "livekit-1.2.1-simulcast"

  var text: String {
    get throws {
      String(decoding: try Vectors.golden("Tests/PalbeSDPTests/Fixtures/\(rawValue).sdp"), as: UTF8.self)
    }
  }

  var description: SessionDescription { get throws { try SessionDescription(parsing: text) } }
}

/// A section as Chrome writes it, with retransmissions.
let chromeVideo = """
  v=0
  o=- 7 1 IN IP4 127.0.0.1
  s=-
  t=0 0
  a=group:BUNDLE v
  m=video 9 UDP/TLS/RTP/SAVPF 109 97 101
  c=IN IP4 0.0.0.0
  a=ice-ufrag:abcd
  a=ice-pwd:abcdefghijklmnopqrstuvwx
  a=fingerprint:sha-256 \(Array(repeating: "aB", count: 32).joined(separator: ":"))
  a=setup:actpass
  a=mid:v
  a=extmap:4/sendonly urn:ietf:params:rtp-hdrext:sdes:mid
  a=sendrecv
  a=msid:stream track
  a=rtcp-mux
  a=rtpmap:109 vp8/90000
  a=rtcp-fb:* transport-cc
  a=rtcp-fb:109 nack
  a=rtpmap:97 rtx/90000
  a=fmtp:97 apt=109
  a=rtpmap:101 AV1/90000
  a=ssrc-group:FID 1 2
  a=ssrc:1 cname:c
  a=ssrc:1 msid:stream track
  a=ssrc:2 cname:c
  """
