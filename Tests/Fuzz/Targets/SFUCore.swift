import PalbeDTLS
import PalbeICE
import PalbeLiveKit
import PalbeProtobuf
import PalbeSDP
import PalbeSFUCore
import PalbeUnits

extension FuzzTarget {
  /// Signal messages of a participant who is in a room with another: each is a length in two bytes, then the message.
  static let sfuSignal = FuzzTarget(name: "sfu-signal") { bytes in
    guard var worker = FuzzedWorker.make() else { return }
    var now = Instant(nanoseconds: 1_000_000_000)
    FuzzedWorker.join(&worker, ConnectionID(1), "alice", at: now)
    FuzzedWorker.join(&worker, ConnectionID(2), "bob", at: now)
    var rest = bytes[...]
    for _ in 0..<32 where rest.count >= 2 {
      let length = min(Int(rest.removeFirst()) << 8 | Int(rest.removeFirst()), rest.count)
      worker.handle(.signal(ConnectionID(1), Array(rest.prefix(length))), at: now)
      rest = rest.dropFirst(length)
      now += .milliseconds(300)
      worker.handleTimeout(at: now)
      FuzzedWorker.drain(&worker, at: now)
    }
    worker.handle(.closed(ConnectionID(1)), at: now)
    worker.handle(.shutDown, at: now)
    FuzzedWorker.drain(&worker, at: now)
  }

  /// Datagrams from two addresses: each is a length in two bytes, then the datagram.
  static let sfuDatagram = FuzzTarget(name: "sfu-datagram") { bytes in
    guard var worker = FuzzedWorker.make() else { return }
    var now = Instant(nanoseconds: 1_000_000_000)
    FuzzedWorker.join(&worker, ConnectionID(1), "alice", at: now)
    var rest = bytes[...]
    for number in 0..<32 where rest.count >= 2 {
      let length = min(Int(rest.removeFirst()) << 8 | Int(rest.removeFirst()), rest.count)
      var datagram = Array(rest.prefix(length)) + [UInt8](repeating: 0, count: 32)
      rest = rest.dropFirst(length)
      var span = datagram.mutableSpan
      let source = SocketAddress(ipv4: 192, 0, 2, UInt8(number & 1), port: 5_000)
      worker.receive(&span, count: length, from: source, at: now)
      worker.withReceivedMedia { _ in }
      now += .milliseconds(100)
      worker.handleTimeout(at: now)
      FuzzedWorker.drain(&worker, at: now)
    }
  }
}

/// A worker as the targets need it; its certificate is made once, because that takes long.
private enum FuzzedWorker {
  static let identity: DTLSIdentity? = {
    var random = RandomSource(seed: 1)
    return try? DTLSIdentity(nowUnix: 1_760_000_000, using: &random)
  }()

  static func make() -> SFUWorker? {
    guard let identity else { return nil }
    return SFUWorker(
      configuration: SFUConfiguration(candidates: [SocketAddress(ipv4: 192, 0, 2, 1, port: 7_882)]),
      identity: identity, random: RandomSource(seed: 2), now: .zero, unixNanoseconds: 0)
  }

  static func join(_ worker: inout SFUWorker, _ connection: ConnectionID, _ identity: String, at now: Instant)
  {
    let request = LiveKit.JoinRequest.with {
      $0.connectionSettings = .with { $0.autoSubscribe = true }
      $0.addTrackRequests = [
        .with {
          $0.cid = "cam"
          $0.type = .video
          $0.source = .camera
        }
      ]
      $0.publisherOffer = .with {
        $0.type = "offer"
        $0.sdp = offer
      }
    }
    worker.handle(
      .join(connection, JoinDetails(grant: AccessGrant(room: "room", identity: identity), request: request)),
      at: now)
    drain(&worker, at: now)
  }

  static func drain(_ worker: inout SFUWorker, at now: Instant) {
    var buffer = [UInt8](repeating: 0, count: 1_500)
    var span = buffer.mutableSpan
    while worker.pollTransmit(into: &span, at: now) != nil {}
    while worker.pollEvent() != nil {}
  }

  static let offer: String = {
    var receiving = MediaSection.rtp(.video, mid: "0", direction: .recvonly)
    var sending = MediaSection.rtp(.video, mid: "1", direction: .sendonly)
    let codecs = [
      RTPCodec(96, "VP8", clockRate: 90_000, feedback: ["nack"]),
      RTPCodec(97, "rtx", clockRate: 90_000, parameters: "apt=96"),
    ]
    receiving.codecs = codecs
    sending.codecs = codecs
    sending.setSending(MediaStreamID(stream: "-", track: "cam"), ssrc: SSRC(9), rtx: SSRC(10), cname: "c")
    var media = [receiving, sending, .dataChannel(mid: "2")]
    let transport = TransportParameters(
      iceUsernameFragment: "abcd", icePassword: "abcdefghijklmnopqrstuvwx",
      fingerprint: Fingerprint(sha256: [UInt8](repeating: 1, count: 32)), setup: .actpass)
    for index in media.indices { media[index].set(transport) }
    return SessionDescription(offering: media, origin: SDPOrigin(sessionID: 1, version: 1)).description
  }()
}
