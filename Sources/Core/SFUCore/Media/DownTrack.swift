import PalbeCongestion
import PalbeRTP
import PalbeUnits
import PalbeWire

/// One subscriber's copy of one published track: a stream of its own with SSRC, numbers, cache and reports.
///
/// ## Overview
///
///     waiting ── a section of the subscriber's takes it ──▶ placed ── transport up ──▶ ready
///
/// Ready audio goes through at once, video from a key frame on: until one comes, `needsKeyFrame` has the publisher
/// asked for it.
///
/// ## Repairs
///
/// Where RTX was negotiated, `sent` tells which packet of which source a number stands for; a repair is rewritten again from
/// the source's history and goes out as a new packet of `repairSSRC`. Where not, `protected` holds the protected bytes and a
/// repair is the same bytes again: nothing different is ever protected under one (SSRC, roll-over count, sequence number).
/// The two kinds never mix: another kind of repair begins with nothing to repair.
final class DownTrack {
  /// Where the subscriber receives it, and how.
  struct Placement: Equatable {
    var mid: String
    var route: Route
  }

  /// What a packet needs of a placement: apart from the name, so that a packet counts no references.
  struct Route: Equatable, BitwiseCopyable {
    var payloadType: PayloadType
    /// RFC 2198, where the track has it and it was negotiated.
    var redundantPayloadType: PayloadType?
    /// RFC 4588, where negotiated.
    var repairPayloadType: PayloadType?
    var ids: RTPExtensionIDs
    var answersNACKs: Bool
  }

  let track: PublishedTrack
  unowned let subscriber: Participant
  // The subscriber's, held here too: each packet needs them, and an `unowned` reference is counted at every use.
  private let transport: PeerTransport
  private let link: LinkControl
  let ssrc: SSRC
  let repairSSRC: SSRC
  /// The subscriber received the track before: it must be able to tell the subscriptions apart.
  let isRepeated: Bool
  /// What its publisher appends to frames is not for this subscriber.
  let stripsTrailer: Bool
  private(set) var placement: Placement? { didSet { route = placement?.route } }
  private(set) var route: Route?
  private(set) var statistics: SenderStatistics
  /// The subscriber has switched it off for now.
  var isDisabled = false { didSet { if isDisabled { restart() } } }
  /// The best layer the subscriber wants, by rank.
  var wantedRank = Int.max
  /// The frames a second that are enough for the subscriber; 0 where it did not say.
  var wantedFrameRate: UInt32 = 0
  /// The highest part of the frames that it needs for that.
  var wantedPart = UInt8.max
  /// 1 is the most important to the subscriber, 0 the least.
  var priority: UInt32 = 0
  /// The best layer that its link takes; nil: none, the video is paused.
  var fitting: VideoLayer? = .highest { didSet { if fitting == nil { restart() } } }
  /// The subscriber does not know its codec.
  var isUnsupported = false
  /// The subscription ended: nothing goes through any more.
  private(set) var isEnded = false
  /// Nothing goes through before the publisher's next key frame.
  private(set) var needsKeyFrame: Bool
  /// The next packet follows on what was sent last, whatever was kept back in between.
  private var beginsAnew = false
  /// The layer to be on; nil takes the first key frame of any.
  private var targetSSRC: SSRC?
  private var rewriter: StreamRewriter
  private var sent = SentPackets(capacity: 1)
  private var protected = RetransmissionCache()
  private var repairSequence: SequenceNumber
  /// The highest temporal layer that goes through, and the frame for which that was decided.
  private var highestLayer = UInt8.max
  private var layerDecidedFor = RTPTimestamp(0)
  /// Of a source that carries several layers in one stream, the one that goes through.
  private var selection = LayerSelection()
  /// Of the packet in hand only the number is sent.
  private var isEmptied = false
  /// The highest number that left while lower ones waited: it is used, whatever becomes of those.
  private var sentAhead: SequenceNumber?
  /// The packet in hand tells which layers are active.
  private var isTelling = false
  /// Which of the last packets a probe repeats next.
  private var repeated = 0
  private static let repeatedPackets = 32

  init(track: PublishedTrack, subscriber: Participant, using random: inout RandomSource) {
    self.track = track
    self.subscriber = subscriber
    transport = subscriber.downTransport
    link = subscriber.link
    ssrc = subscriber.freshSSRC(using: &random)
    repairSSRC = subscriber.freshSSRC(using: &random)
    isRepeated = subscriber.downlink.noteSubscription(to: track)
    stripsTrailer = track.hasTrailer(unknownTo: subscriber)
    statistics = SenderStatistics(ssrc: ssrc, clockRate: track.kind.clockRate)
    let first = random.next()
    rewriter = StreamRewriter(
      clockRate: track.kind.clockRate, firstSequence: UInt16(truncatingIfNeeded: first))
    repairSequence = SequenceNumber(UInt16(truncatingIfNeeded: first >> 16) & 0x7fff)
    needsKeyFrame = track.kind == .video
  }

  /// Names it in its subscriber's allocation.
  var id: Int { Int(ssrc.rawValue) }

  /// It needs a section of the subscriber's.
  func isWaiting(_ kind: TrackKind) -> Bool { placement == nil && !isUnsupported && track.kind == kind }

  /// The subscriber wants it, and could get it.
  var isWanted: Bool { route != nil && !isDisabled && !isEnded && transport.isConnected }

  /// Where its packets go; nil while there is nowhere.
  var destination: SocketAddress? { transport.remote }

  /// Packets can go out.
  var isReady: Bool { isWanted && fitting != nil }

  /// The source that goes through now.
  var source: SSRC? { rewriter.source }

  func place(_ new: Placement) {
    guard new != placement else { return }
    let usesRTX = new.route.repairPayloadType != nil
    let isSameKind =
      route?.answersNACKs == new.route.answersNACKs && (route?.repairPayloadType != nil) == usesRTX
    if placement == nil || !isSameKind {
      let capacity = !new.route.answersNACKs ? 1 : track.kind == .video ? 512 : 128
      sent = SentPackets(capacity: usesRTX ? capacity : 1)
      protected =
        usesRTX
        ? RetransmissionCache()
        : RetransmissionCache(capacity: capacity, byteLimit: track.kind == .video ? 64 << 10 : 16 << 10)
    }
    placement = new
    if new.route.ids.transportSequenceNumber != 0 || new.route.ids.absoluteSendTime != 0 {
      link.expectFeedback(at: subscriber.context.now)
    }
  }

  /// The section it was in is gone.
  func unplace() {
    placement = nil
    restart()
  }

  func end() {
    if !isEnded { subscriber.context.totals.sent.add(statistics) }
    isEnded = true
    placement = nil
  }

  /// What comes next starts anew: video with a key frame.
  func restart() {
    needsKeyFrame = track.kind == .video
    beginsAnew = true
  }

  /// Chooses among simulcast layers: the best live one that is wanted, else the lowest live one.
  ///
  /// - Returns: the layer whose key frame is needed, nil when the stream goes on as it is.
  func chooseLayer(at now: Instant) -> IncomingStream? {
    var target = track.streams.first
    if track.streams.count > 1 {
      var best: IncomingStream?
      var lowest: IncomingStream?
      let rank = min(wantedRank, Int(fitting?.spatial ?? 0))
      for stream in track.streams where stream.isAlive(at: now) {
        if stream.rank <= rank, stream.rank > best?.rank ?? -1 { best = stream }
        if stream.rank < lowest?.rank ?? .max { lowest = stream }
      }
      target = best ?? lowest
    }
    targetSSRC = target?.ssrc
    guard isReady, let target else { return nil }
    if !needsKeyFrame, target.ssrc == rewriter.source {
      guard let layering = target.layering else { return nil }
      selection.want(wantedLayer(layering))
      guard selection.needsKeyFrame else { return nil }
    }
    return target
  }

  /// The largest size that the subscriber wants, where the publisher has that many.
  func wantedSize(of count: Int) -> Int {
    // The best quality is the largest size, whatever their number.
    wantedRank >= 2 ? .max : max(0, wantedRank - max(0, 3 - max(count, 1)))
  }

  /// The layer of a stream with several that is wanted and fits.
  private func wantedLayer(_ layering: Layering) -> UInt8 {
    let fits = fitting ?? VideoLayer(spatial: 0, temporal: 0)
    // Of simulcast layers another stream has the other size.
    let size = track.streams.count > 1 ? .max : min(wantedSize(of: layering.sizeCount), Int(fits.spatial))
    return layering.present.best(spatial: size, temporal: Int(fits.temporal))
  }

  /// True when the packet belongs into this stream; starts the stream where that is the place for it.
  private func admit(_ packet: borrowing MediaPacket, at now: Instant) -> Bool {
    let isCurrent = rewriter.source == packet.header.ssrc
    let follows = isCurrent && rewriter.follows(packet.sequence)
    switch track.kind {
    case .audio:
      if !follows || beginsAnew { rewriter.start(packet, at: now) }
      beginsAnew = false
      return true
    case .video:
      if isCurrent {
        if !follows { restart() }
        guard needsKeyFrame else { return keepsLayer(of: packet, at: now) }
      } else if let targetSSRC, targetSSRC != packet.header.ssrc {
        return false
      }
      guard packet.startsKeyFrame else { return false }
      begin(packet, at: now)
      needsKeyFrame = false
      return packet.layers == nil || keepsLayer(of: packet, at: now)
    }
  }

  /// False for a packet of a temporal layer that does not fit; it leaves no gap. Down at once, but with a whole frame; up one
  /// layer at a time, at a frame that allows it.
  private func keepsLayer(of packet: borrowing MediaPacket, at now: Instant) -> Bool {
    if let frame = packet.layers { return keeps(frame, of: packet, at: now) }
    let layer = packet.temporalLayer
    if packet.header.timestamp != layerDecidedFor, rewriter.isNewest(packet.sequence) {
      layerDecidedFor = packet.header.timestamp
      let fits = fitting?.temporal ?? 0
      if fits < highestLayer {
        highestLayer = fits
      } else if fits > highestLayer, layer == highestLayer + 1, packet.isLayerSync {
        highestLayer = layer
      }
    }
    return layer <= highestLayer || leaveOut(packet)
  }

  /// Leaves the packet out. True for one that comes late, which fills its place with nothing: who waits for it need not ask.
  private func leaveOut(_ packet: borrowing MediaPacket) -> Bool {
    isEmptied = !rewriter.leaveOut(packet)
    return isEmptied
  }

  /// The same for a packet of a stream that carries several layers.
  private func keeps(_ frame: FrameLayers, of packet: borrowing MediaPacket, at now: Instant) -> Bool {
    let isNewest = rewriter.isNewest(packet.sequence)
    if isNewest, packet.header.timestamp != layerDecidedFor {
      layerDecidedFor = packet.header.timestamp
      if let layering = track.layering(of: packet.header.ssrc) {
        if packet.startsKeyFrame {
          selection.begin(wantedLayer(layering), of: layering)
        } else {
          selection.beginPicture(frame, wanted: wantedLayer(layering), of: layering)
          // Of a layer that has ended nothing comes any more.
          if selection.needsKeyFrame, !layering.present[selection.current] {
            track.wantKeyFrame(for: self, at: now)
          }
        }
      }
    } else if isNewest, frame.startsFrame {
      selection.pass(frame)
    }
    guard selection.takes(frame) else {
      if isNewest { selection.leaveOut(frame) }
      return leaveOut(packet)
    }
    isTelling = selection.tells(frame)
    return true
  }

  /// A key frame begins, maybe of another layer: its timestamps go on where those before name the same moment, so that lips
  /// stay in step with sound.
  private func begin(_ packet: borrowing MediaPacket, at now: Instant) {
    dropHeld()
    var aligned: UInt32?
    if let before = rewriter.source, before != packet.header.ssrc, let offset = rewriter.timestampOffset,
      let old = track.clock(of: before), let new = track.clock(of: packet.header.ssrc)
    {
      aligned = offset &+ old.offset(to: new, clockRate: track.kind.clockRate)
      // What a step of time changed is told at once.
      subscriber.nextReportAt = min(subscriber.nextReportAt, now)
      subscriber.wake(at: now)
    }
    rewriter.start(packet, at: now, aligned: aligned)
    highestLayer = fitting?.temporal ?? 0
    layerDecidedFor = packet.header.timestamp
    guard packet.layers != nil, let layering = track.layering(of: packet.header.ssrc) else { return }
    selection.begin(wantedLayer(layering), of: layering)
  }

  /// Writes this subscriber's copy of the packet, protected. Nil when it does not get one, or not yet. No allocation.
  @_lifetime(buffer: copy buffer)
  func forward(
    _ packet: borrowing MediaPacket, into buffer: inout MutableSpan<UInt8>, at now: Instant
  ) -> Int? {
    isEmptied = false
    isTelling = false
    guard isReady, let placement = route, admit(packet, at: now),
      var fields = rewriter.fields(of: packet, at: now)
    else { return nil }
    if let frame = packet.layers {
      // Of what was the last packet of its picture, larger sizes may be missing.
      fields.endsPicture = fields.endsPicture || frame.endsFrame && frame.spatial == selection.spatial
      fields.tellsLayers = isTelling && packet.frameNumber != nil
    }
    let isRepairedByRTX = placement.answersNACKs && placement.repairPayloadType != nil
    if isRepairedByRTX, !isEmptied {
      sent.note(packet, sentAs: fields)
      if track.kind == .video, link.mustWait(byteCount: packet.count, at: now) {
        hold(packet, fields, at: now)
        return nil
      }
    }
    if isEmptied, fields.sequenceNumber.distance(from: sentAhead ?? fields.sequenceNumber) >= 0 {
      sentAhead = fields.sequenceNumber
    }
    guard
      let layout = write(packet, as: fields, in: placement, padding: packet.padding, into: &buffer, at: now),
      let count = protect(&buffer, count: layout.byteCount, track.kind == .audio ? .audio : .video, at: now)
    else { return nil }
    if placement.answersNACKs, !isRepairedByRTX {
      protected.store(fields.sequenceNumber, buffer.span.extracting(0..<count))
    }
    statistics.sent(
      timestamp: fields.timestamp,
      payloadByteCount: layout.byteCount - layout.headerByteCount - packet.padding, at: now)
    return count
  }

  /// Writes the packet as this subscriber gets it, in the clear.
  @_lifetime(buffer: copy buffer)
  private func write(
    _ packet: borrowing MediaPacket, as fields: StreamRewriter.Fields, in placement: Route,
    padding: Int, into buffer: inout MutableSpan<UInt8>, at now: Instant
  ) -> RTPPacketLayout? {
    var header = packet.header
    var parsed = packet.header
    header.marker = fields.endsPicture && !isEmptied
    if isEmptied { parsed.paddingByteCount = packet.count - parsed.headerByteCount }
    header.payloadType = placement.payloadType
    if packet.primaryOffset > 0 {
      if let redundant = placement.redundantPayloadType {
        header.payloadType = redundant
      } else {
        // A client that does not know redundancy gets the sound alone.
        parsed.headerByteCount += packet.primaryOffset
      }
    }
    if stripsTrailer, header.marker, !isEmptied {
      // In front of it lies more than the descriptor alone.
      let start = parsed.headerByteCount + (packet.descriptor?.byteCount ?? 0)
      let end = packet.count - parsed.paddingByteCount
      if start < end {
        parsed.paddingByteCount += PacketTrailer.byteCount(in: packet.span.extracting(start..<end))
      }
    }
    header.ssrc = ssrc
    header.sequenceNumber = fields.sequenceNumber
    header.timestamp = fields.timestamp
    var values = linkValues(placement.ids, at: now)
    values.audioLevel = packet.extensions.audioLevel
    values.videoOrientation = packet.extensions.videoOrientation
    // Where the payload itself tells the same, as VP8's and VP9's descriptors do, that is enough.
    if packet.frameNumber != nil { values.dependencyDescriptor = packet.extensions.dependencyDescriptor }
    do throws(WireError) {
      var layout =
        fields.tellsLayers
        ? try writeTelling(packet, parsed: parsed, as: header, values, placement.ids, into: &buffer)
        : try RTPPacketWriter.rewriteHeader(
          of: packet.span, parsed: parsed, as: header, extensions: values, ids: placement.ids,
          into: &buffer)
      guard !isEmptied else { return layout }
      if let descriptor = packet.descriptor {
        try descriptor.rewrite(
          in: &buffer, at: layout.headerByteCount, pictureID: fields.pictureID,
          tl0PictureIndex: fields.tl0PictureIndex)
      }
      if let descriptor = packet.vp9 {
        try descriptor.rewrite(
          in: &buffer, at: layout.headerByteCount, pictureID: fields.pictureID,
          tl0PictureIndex: fields.tl0PictureIndex)
      } else if layout.descriptorOffset > 0 {
        // The frame's number lies behind the first byte.
        buffer.store(uint16: fields.pictureID, at: layout.descriptorOffset + 1)
      }
      if padding > 0 { layout.byteCount = try buffer.padRTP(layout.byteCount, by: padding) }
      return layout
    } catch { return nil }
  }

  /// Writes the header with a dependency descriptor that tells which layers the receiver gets.
  @_lifetime(buffer: copy buffer)
  private func writeTelling(
    _ packet: borrowing MediaPacket, parsed: RTPHeader, as header: RTPHeader,
    _ extensions: RTPExtensionValues,
    _ ids: RTPExtensionIDs, into buffer: inout MutableSpan<UInt8>
  ) throws(WireError) -> RTPPacketLayout {
    var values = extensions
    var scratch = InlineArray<256, UInt8>(repeating: 0)
    var count = 0
    if let range = values.dependencyDescriptor?.range, range.upperBound <= packet.count,
      let layering = track.layering(of: packet.header.ssrc)
    {
      var room = scratch.mutableSpan
      do throws(WireError) {
        count = try DependencyDescriptor.rewrite(
          packet.span.extracting(range), with: layering.structure,
          active: layering.present.intersection(selection.active), into: &room)
      } catch { count = 0 }
    }
    guard count > 0 else {
      return try RTPPacketWriter.rewriteHeader(
        of: packet.span, parsed: parsed, as: header, extensions: values, ids: ids, into: &buffer)
    }
    values.dependencyDescriptor = RTPExtensionBytes(0..<count)
    return try RTPPacketWriter.rewriteHeader(
      of: packet.span, parsed: parsed, as: header, extensions: values, descriptors: scratch.span, ids: ids,
      into: &buffer)
  }

  /// What tells the client how its link fares: the number of the packet that leaves next, or its time.
  private func linkValues(_ ids: RTPExtensionIDs, at now: Instant) -> RTPExtensionValues {
    var values = RTPExtensionValues()
    if ids.transportSequenceNumber != 0 { values.transportSequenceNumber = link.nextNumber }
    if ids.absoluteSendTime != 0 { values.absoluteSendTime = AbsoluteSendTime(now) }
    return values
  }

  @_lifetime(buffer: copy buffer)
  private func protect(
    _ buffer: inout MutableSpan<UInt8>, count: Int, _ kind: Pacer.Kind, at now: Instant
  ) -> Int? {
    guard let count = transport.protectRTP(&buffer, count: count) else { return nil }
    link.sent(kind, byteCount: count, at: now)
    return count
  }

  // MARK: Repairs

  /// Writes a repair. Nil when the packet is not there any more, was repaired a moment ago, or would show nothing.
  ///
  /// - Parameter scratch: where the packet that is repeated is put together again.
  @_lifetime(buffer: copy buffer)
  func repair(
    _ sequence: SequenceNumber, using scratch: inout MediaPacket, into buffer: inout MutableSpan<UInt8>,
    at now: Instant
  ) -> Int? {
    guard isReady, let placement = route, placement.answersNACKs, rewriter.isOfPresentSource(sequence) else {
      return nil
    }
    // A receiver that asks again before a repair can have arrived must not make us amplify.
    let interval = max(.milliseconds(10), min(statistics.roundTrip ?? .zero, .milliseconds(200)))
    guard placement.repairPayloadType != nil else {
      guard protected.claimRepair(sequence, at: now, minimumInterval: interval) else { return nil }
      return protected.copy(sequence, into: &buffer)
    }
    guard link.takesRepair(at: now), let entry = sent.claim(sequence, at: now, interval: interval)
    else { return nil }
    let count = sendAgain(entry, .video, using: &scratch, into: &buffer, at: now)
    if let count { link.repaired(byteCount: count) }
    return count
  }

  /// Puts a packet together again that was sent or waits.
  private func restore(_ entry: SentPackets.Entry, into scratch: inout MediaPacket) -> Bool {
    guard let source = track.streams.first(where: { $0.ssrc == entry.source }) else { return false }
    isEmptied = false
    return source.restore(entry, into: &scratch)
  }

  /// The fields of a packet that was sent or waits. Of one from before the last structure nobody knows any more what its
  /// descriptor means.
  private func fields(of entry: SentPackets.Entry) -> StreamRewriter.Fields {
    var fields = entry.fields
    if fields.tellsLayers {
      fields.tellsLayers = track.layering(of: entry.source)?.isCurrent(entry.sequence) ?? false
    }
    return fields
  }

  /// Writes a retransmission.
  @_lifetime(buffer: copy buffer)
  private func sendAgain(
    _ entry: SentPackets.Entry, _ kind: Pacer.Kind, using scratch: inout MediaPacket,
    into buffer: inout MutableSpan<UInt8>, at now: Instant
  ) -> Int? {
    guard let placement = route, let payloadType = placement.repairPayloadType,
      restore(entry, into: &scratch),
      let layout = write(scratch, as: fields(of: entry), in: placement, padding: 0, into: &buffer, at: now)
    else { return nil }
    do throws(WireError) {
      let wrapped = try RTX.wrap(
        &buffer, count: layout.byteCount, payloadType: payloadType, ssrc: repairSSRC,
        sequenceNumber: repairSequence)
      repairSequence = repairSequence + 1
      return protect(&buffer, count: wrapped, kind, at: now)
    } catch { return nil }
  }

  // MARK: Packets that wait for the link

  private func hold(_ packet: borrowing MediaPacket, _ fields: StreamRewriter.Fields, at now: Instant) {
    link.hold(
      PacedPacket(
        track: self, sequence: fields.sequenceNumber, timestamp: fields.timestamp, byteCount: packet.count,
        since: now), at: now)
  }

  /// Writes a packet whose turn has come.
  @_lifetime(buffer: copy buffer)
  func sendHeld(
    _ sequence: SequenceNumber, using scratch: inout MediaPacket, into buffer: inout MutableSpan<UInt8>,
    at now: Instant
  ) -> Int? {
    guard isWanted, let placement = route, let entry = sent.entry(sequence), restore(entry, into: &scratch),
      let layout = write(scratch, as: fields(of: entry), in: placement, padding: 0, into: &buffer, at: now),
      let count = protect(&buffer, count: layout.byteCount, .video, at: now)
    else { return nil }
    statistics.sent(
      timestamp: entry.timestamp, payloadByteCount: layout.byteCount - layout.headerByteCount, at: now)
    return count
  }

  /// What waited was dropped: only a new key frame helps.
  func interrupt(at now: Instant) {
    dropHeld()
    restart()
    track.wantKeyFrame(for: self, at: now)
  }

  /// Another picture comes: what waits is in vain. Its numbers were used for nothing yet, and go to what comes.
  private func dropHeld() {
    guard var first = link.dropHeld(self, exceptOf: statistics.lastTimestamp) else { return }
    if let sentAhead, sentAhead.distance(from: first) >= 0 { first = sentAhead + 1 }
    sentAhead = nil
    rewriter.takeBack(from: first)
  }

  /// Writes a packet that tells nothing new: one of the last ones again, else padding alone. Nil without a repair stream.
  @_lifetime(buffer: copy buffer)
  func pad(
    _ byteCount: Int, using scratch: inout MediaPacket, into buffer: inout MutableSpan<UInt8>, at now: Instant
  ) -> Int? {
    guard isWanted, let placement = route, let payloadType = placement.repairPayloadType else { return nil }
    for _ in 0..<Self.repeatedPackets {
      guard let sequence = rewriter.lastNumber else { break }
      let entry = sent.entry(sequence + -repeated)
      repeated = (repeated + 1) % Self.repeatedPackets
      // A small packet would measure its headers.
      guard let entry, restore(entry, into: &scratch), scratch.count > 500 || 2 * scratch.count > byteCount
      else { continue }
      return sendAgain(entry, .padding, using: &scratch, into: &buffer, at: now)
    }
    let header = RTPHeader(
      payloadType: payloadType, sequenceNumber: repairSequence, timestamp: rewriter.lastTimestamp,
      ssrc: repairSSRC)
    repairSequence = repairSequence + 1
    do throws(WireError) {
      let count = try RTPPacketWriter.writePadding(
        header, extensions: linkValues(placement.ids, at: now), ids: placement.ids, into: &buffer)
      return protect(&buffer, count: count, .padding, at: now)
    } catch { return nil }
  }

  func received(_ block: ReportBlock, at now: Instant) {
    guard let clock = track.clock(of: rewriter.source) else { return }
    statistics.received(block, ntpTime: clock.ntpTime(at: now))
  }

  /// The sender report, on the publisher's clock; nil before the publisher told it or while nothing was sent.
  func report(at now: Instant) -> SenderReport? {
    guard let clock = track.clock(of: rewriter.source), let offset = rewriter.timestampOffset,
      var report = statistics.report(at: now, ntpTime: clock.ntpTime(at: now))
    else { return nil }
    let timestamp = clock.rtpTimestamp(at: now, clockRate: track.kind.clockRate)
    report.rtpTimestamp = RTPTimestamp(timestamp.rawValue &+ offset)
    return report
  }
}
