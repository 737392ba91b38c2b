import PalbeCallCore
import PalbeFrameEncryption
import PalbeLiveKit
import PalbeProtobuf
import PalbeRTP
import PalbeSDP
import PalbeUnits
import Testing

@Suite struct ScriptedServerTests {
  @Test(
    "RFC 8842 §5: we are client of a passive server, server of an active one",
    arguments: [false, true])
  func roles(isActive: Bool) throws {
    let server = try ScriptedServer(isActive: isActive)
    try server.bringUp()
    #expect(server.isConnected)
    let frame = SyntheticFrame(isKeyFrame: true, number: 1, sentAt: server.now).video(byteCount: 3_000)
    try server.capture(frame, on: .camera, timestamp: 7)
    #expect(server.media.count == 3)
  }

  @Test("RFC 8827 §6.5: a certificate with another fingerprint ends the session")
  func wrongFingerprint() throws {
    let server = try ScriptedServer()
    server.shownFingerprint[3] ^= 1
    try server.bringUp()
    #expect(!server.isConnected)
    #expect(server.events.contains(.disconnected(.connectionLost)))
  }

  @Test("LiveKit protocol §1.2: the join request carries tracks and an offer that LiveKit's rules allow")
  func joinRequest() throws {
    let server = try ScriptedServer(encryption: .sframe)
    let request = server.request
    #expect(request.connectionSettings?.autoSubscribe == true)
    #expect(request.clientInfo?.protocol == 16)
    #expect(request.addTrackRequests.map(\.encryption) == [.custom, .custom])
    #expect(request.addTrackRequests.first { $0.type == .audio }?.disableRed == true)
    let message = try #require(request.publisherOffer)
    #expect(message.id == 1 && message.type == "offer")
    let offer = try SessionDescription(parsing: message.sdp)
    try offer.validate(as: .offer)
    #expect(
      offer.media.map(\.direction) == [.sendonly, .sendonly]
        + [MediaDirection](repeating: .recvonly, count: 6))
    for (section, track) in zip(offer.media, request.addTrackRequests) {
      #expect(section.msids == [MediaStreamID(stream: "-", track: track.cid)])
      #expect(section.sources.count == 1)
    }
    #expect(offer.transport?.setup == .actpass)
    #expect(!offer.media[0].candidates.isEmpty)
    // The level of the voice is not offered for what we send.
    #expect(offer.media[0].headerExtensionID(RTPExtensionIDs.audioLevelURI) == nil)
  }

  @Test(
    "LiveKit protocol §1.2: join must be the first message"
  )
  func firstMessage() throws {
    let early = try ScriptedServer()
    early.send(.update(.with { $0.participants = [ScriptedServer.other()] }))
    #expect(early.events == [.disconnected(.protocolViolation)])
    let garbage = try ScriptedServer()
    garbage.send(raw: [0xff, 0xff, 0xff])
    #expect(garbage.events == [.disconnected(.protocolViolation)])
    let refusing = try ScriptedServer()
    refusing.send(.leave(.with { $0.reason = .duplicateIdentity }))
    #expect(refusing.events == [.disconnected(.server(code: 2))])
    // Once in, what cannot be read is passed over.
    let server = try ScriptedServer()
    try server.bringUp()
    server.send(raw: [0xff, 0xff, 0xff])
    #expect(!server.events.contains { if case .disconnected = $0 { true } else { false } })
  }

  @Test(
    "RFC 8829 §5.8: an answer must fit the offer; one to an older offer is passed over"
  )
  func answers() throws {
    let server = try ScriptedServer()
    server.send(.join(ScriptedServer.joinResponse(others: [])))
    let offer = try #require(server.request.publisherOffer)
    var answer = try server.answer(to: offer, tracks: [:])
    answer.id = 77
    server.send(.answer(answer))
    #expect(server.events.isEmpty)
    answer.id = 0
    answer.sdp = "v=0\r\n"
    server.send(.answer(answer))
    #expect(server.events == [.disconnected(.protocolViolation)])
  }

  @Test("LiveKit protocol §1.5: the server mutes a track of ours, we obey and say so")
  func serverMute() throws {
    let server = try ScriptedServer()
    try server.bringUp()
    let cid = try #require(server.request.addTrackRequests.first { $0.type == .audio }?.cid)
    server.send(
      .trackPublished(
        .with {
          $0.cid = cid
          $0.track = .with { $0.sid = "TR_mine" }
        }))
    server.send(
      .mute(
        .with {
          $0.sid = "TR_mine"
          $0.muted = true
        }))
    #expect(server.events.contains(.mutedByServer(.microphone, true)))
    #expect(
      server.signals.contains {
        if case .mute(let mute) = $0 { mute.sid == "TR_mine" && mute.muted } else { false }
      })
    let packet: [UInt8] = [0x78, 1, 2]
    #expect(throws: SendError.notPublished) {
      try server.capture(packet, on: .microphone, timestamp: 0)
    }
  }

  @Test("a track that the server does not take is told, and nothing of it is sent")
  func serverRefusal() throws {
    let server = try ScriptedServer()
    try server.bringUp()
    let request = try #require(server.request.addTrackRequests.first { $0.type == .audio })
    func refuse(_ reason: LiveKit.RequestResponse.Reason) {
      server.send(
        .requestResponse(
          .with {
            $0.reason = reason
            $0.request = .addTrack(request)
          }))
    }
    refuse(.queued)
    #expect(throws: Never.self) { try server.capture([0x78, 1, 2], on: .microphone, timestamp: 0) }
    refuse(.notAllowed)
    refuse(.notAllowed)
    let told = server.events.filter { $0 == .refusedByServer(.microphone, reason: "NOT_ALLOWED") }
    #expect(told.count == 1)
    #expect(throws: SendError.notPublished) {
      try server.capture([0x78, 1, 2], on: .microphone, timestamp: 960)
    }
  }

  @Test(
    "RFC 4585 §6.2.1: a NACK is answered with the same protected bytes, not too often"
  )
  func repairs() throws {
    let server = try ScriptedServer()
    try server.bringUp()
    let frame = SyntheticFrame(isKeyFrame: true, number: 1, sentAt: server.now).video(byteCount: 3_000)
    try server.capture(frame, on: .camera, timestamp: 7)
    let first = server.protectedMedia
    let packet = first[1]
    let header = try RTPHeader.parseProtected(packet.span)
    let nack = GenericNACK(sender: SSRC(9), media: header.ssrc, sequenceNumbers: [header.sequenceNumber])
    server.send(packet: RTCPPacket.compound([.nack(nack)]))
    #expect(server.protectedMedia == first + [first[1]])
    server.send(packet: RTCPPacket.compound([.nack(nack)]))
    #expect(server.protectedMedia.count == 4)
    server.advance(by: .milliseconds(30))
    server.send(packet: RTCPPacket.compound([.nack(nack)]))
    #expect(server.protectedMedia == first + [first[1], first[1]])
    #expect(server.session.statistics.retransmittedPackets == 2)
  }

  @Test("RFC 5104 §4.3.1: PLI and FIR ask the camera's encoder for a key frame")
  func keyFrameRequests() throws {
    let server = try ScriptedServer()
    try server.bringUp()
    let description = try SessionDescription(parsing: server.request.publisherOffer?.sdp ?? "")
    let camera = try #require(description.media.first { $0.kind == .video }?.sources.first?.ssrc)
    let microphone = try #require(description.media.first { $0.kind == .audio }?.sources.first?.ssrc)
    server.send(packet: RTCPPacket.compound([.pictureLossIndication(sender: SSRC(9), media: microphone)]))
    #expect(!server.events.contains(.keyFrameRequested(.camera)))
    server.send(packet: RTCPPacket.compound([.pictureLossIndication(sender: SSRC(9), media: camera)]))
    #expect(server.events.filter { $0 == .keyFrameRequested(.camera) }.count == 1)
    server.advance(by: .seconds(1))
    let fir = FullIntraRequest(sender: SSRC(9), entries: [.init(ssrc: camera, sequence: 1)])
    server.send(packet: RTCPPacket.compound([.fullIntraRequest(fir)]))
    #expect(server.events.filter { $0 == .keyFrameRequested(.camera) }.count == 2)
  }

  @Test(
    "LiveKit protocol §4 (5): a key frame is asked for when the path is up, until one comes"
  )
  func asksForKeyFrame() throws {
    let server = try ScriptedServer()
    try server.bringUp()
    func requests() -> Int {
      server.control.count {
        if case .pictureLossIndication(_, let media) = $0 { media == SSRC(2_000) } else { false }
      }
    }
    #expect(requests() == 1)
    server.advance(by: .milliseconds(1_200))
    #expect(requests() == 3)
    server.send(packet: server.videoPacket(1, isKeyFrame: true))
    server.advance(by: .seconds(2))
    #expect(requests() == 3)
    #expect(server.videoFrames.count == 1)
  }

  @Test(
    "A missing packet is asked for; if it never comes, a key frame goes on")
  func unrepairableLoss() throws {
    let server = try ScriptedServer()
    try server.bringUp()
    server.send(packet: server.videoPacket(1, isKeyFrame: true))
    server.send(packet: server.videoPacket(2, isKeyFrame: false))
    server.send(packet: server.videoPacket(4, isKeyFrame: false))
    server.advance(by: .milliseconds(100))
    let isAsked = server.control.contains {
      if case .nack(let nack) = $0 { nack.sequenceNumbers == [SequenceNumber(3)] } else { false }
    }
    #expect(isAsked)
    server.advance(by: .seconds(1))
    server.send(packet: server.videoPacket(5, isKeyFrame: false))
    #expect(server.videoFrames.count == 2)
    server.send(packet: server.videoPacket(6, isKeyFrame: true))
    server.send(packet: server.videoPacket(7, isKeyFrame: false))
    #expect(server.videoFrames.map(\.isKeyFrame) == [true, false, true, false])
    #expect(server.session.statistics.remoteTracks.contains { $0.keyFrameRequests >= 2 })
  }

  @Test("RFC 4588 §4: a retransmission on its own SSRC fills the gap; the original behind it is passed over")
  func retransmission() throws {
    let server = try ScriptedServer()
    try server.bringUp()
    server.send(packet: server.videoPacket(1, isKeyFrame: true))
    server.send(packet: server.videoPacket(3, isKeyFrame: false))
    var lost = server.videoPacket(2, isKeyFrame: false) + [0, 0]
    let count = lost.count - 2
    var span = lost.mutableSpan
    _ = try RTX.wrap(
      &span, count: count, payloadType: PayloadType(97), ssrc: SSRC(2_001),
      sequenceNumber: SequenceNumber(500))
    server.send(packet: lost)
    #expect(server.videoFrames.count == 3)
    server.send(packet: server.videoPacket(2, isKeyFrame: false))
    #expect(server.videoFrames.count == 3)
    let track = try #require(server.session.statistics.remoteTracks.first { $0.kind == .video })
    #expect(track.packets == 3 && track.lostPackets == 0)
  }

  @Test("RFC 9143 §9.2: a stream whose SSRC was not announced is found by its MID")
  func unannouncedSSRC() throws {
    let server = try ScriptedServer()
    let offer = try #require(server.request.publisherOffer)
    var tracks = try ScriptedServer.tracks(in: offer)
    let mid = try #require(tracks.first { $0.value.sid == "TR_video" }?.key)
    tracks[mid]?.ssrc = nil
    tracks[mid]?.repairSSRC = nil
    try server.bringUp(tracks: tracks)
    server.send(packet: server.videoPacket(1, isKeyFrame: true, ssrc: 7_777))
    #expect(server.videoFrames.isEmpty)
    server.send(packet: server.videoPacket(2, isKeyFrame: true, ssrc: 7_777, mid: mid))
    server.send(packet: server.videoPacket(3, isKeyFrame: false, ssrc: 7_777))
    #expect(server.videoFrames.count == 2)
  }

  @Test("e2ee §5.4: frames nobody sealed are not played, and the participant is named")
  func plainFramesOnSealedTrack() throws {
    let server = try ScriptedServer(encryption: .sframe)
    try server.install(callKey)
    try server.bringUp(ScriptedServer.other(encryption: .custom))
    for number in UInt16(1)...30 {
      server.send(packet: server.audioPacket(number))
      server.send(packet: server.videoPacket(number, isKeyFrame: number % 10 == 1))
      server.advance(by: .milliseconds(20))
    }
    server.advance(by: .seconds(1))
    #expect(server.videoFrames.isEmpty)
    for case .trackSubscribed(let id, _, .audio, _) in server.events {
      #expect(server.session.pullAudio(id, at: server.now) == .idle)
    }
    #expect(
      server.events.contains { if case .decryptionFailing("bob", .video, _) = $0 { true } else { false } })
    #expect(
      server.events.contains { if case .decryptionFailing("bob", .audio, _) = $0 { true } else { false } })
  }

  @Test("A track whose encryption is taken away in mid-call is no longer played")
  func encryptionTakenAway() throws {
    let server = try ScriptedServer(encryption: .sframe)
    try server.install(callKey)
    try server.bringUp(ScriptedServer.other(encryption: .custom))
    server.send(packet: server.audioPacket(1))
    server.send(.update(.with { $0.participants = [ScriptedServer.other(version: 2)] }))
    for number in UInt16(2)...30 { server.send(packet: server.audioPacket(number)) }
    let ids = server.events.compactMap { event -> RemoteTrackID? in
      if case .trackSubscribed(let id, _, .audio, _) = event { id } else { nil }
    }
    #expect(ids.count == 2)
    server.advance(by: .milliseconds(500))
    for id in ids { #expect(server.session.pullAudio(id, at: server.now) == .idle) }
  }

  @Test("RFC 3550 §6: reports go out every second, feedback on the transport every 100 ms")
  func reports() throws {
    let server = try ScriptedServer()
    try server.bringUp()
    for number in UInt16(1)...50 {
      server.send(packet: server.audioPacket(number))
      let bytes = SyntheticFrame(number: UInt32(number), sentAt: server.now).audio(byteCount: 60)
      try server.capture(bytes, on: .microphone, timestamp: UInt32(number) * 960)
      server.advance(by: .milliseconds(20))
    }
    server.advance(by: .milliseconds(200))
    let reports = server.control.compactMap { packet -> SenderReport? in
      if case .senderReport(let report) = packet { report } else { nil }
    }
    #expect(reports.count == 1)
    #expect(reports.first?.blocks.contains { $0.ssrc == SSRC(1_000) && $0.cumulativeLost == 0 } == true)
    let feedback = server.control.count { if case .transportFeedback = $0 { true } else { false } }
    #expect((8...13).contains(feedback), "\(feedback)")
  }

  @Test("LiveKit protocol §1.5: speakers are told with all that is known, loudest first")
  func speakers() throws {
    let server = try ScriptedServer()
    try server.bringUp()
    func speaker(_ sid: String, _ level: Float) -> LiveKit.SpeakerInfo {
      .with {
        $0.sid = sid
        $0.level = level
        $0.active = level > 0
      }
    }
    server.send(.speakersChanged(.with { $0.speakers = [speaker("PA_other", 0.2), speaker("PA_ada", 0.5)] }))
    #expect(server.events.last == .activeSpeakersChanged(identities: ["ada", "bob"]))
    server.send(.speakersChanged(.with { $0.speakers = [speaker("PA_ada", 0), speaker("PA_unknown", 1)] }))
    #expect(server.events.last == .activeSpeakersChanged(identities: ["bob"]))
  }
}
