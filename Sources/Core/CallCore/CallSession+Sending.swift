import PalbeFrameEncryption
import PalbeRTP
public import PalbeUnits

/// What leaves on the UDP socket.
extension CallSession {
  /// Sends one encoded frame: sealed once, cut into packets, protected, and queued for `pollTransmit`.
  ///
  /// - Parameters:
  ///   - frame: one VP8 frame, or one Opus packet; at most 1 MiB.
  ///   - timestamp: when it was sampled, on the 90 kHz (VP8) or 48 kHz (Opus) clock. It goes on by wall time,
  ///     also while muted.
  public mutating func send(
    _ frame: Span<UInt8>, on track: LocalTrack, timestamp: RTPTimestamp, at now: Instant
  ) throws(SendError) {
    guard phase == .connected else { throw .notConnected }
    guard let sender = sender(track), !sender.isMuted, !sender.isRefused, let parameters = sender.parameters
    else {
      throw .notPublished
    }
    guard frame.count > 0, frame.count <= Self.frameLimit else { throw .frameSize(frame.count) }
    let sealed = try seal(frame, sender, timestamp, at: now)
    switch track {
    case .microphone:
      guard sealed.count <= sender.packetizer.maximumPayloadByteCount else { throw .frameSize(frame.count) }
      write(sender, parameters, timestamp, marker: false, descriptor: nil, body: sealed, at: now)
    case .camera:
      if frame[0] & 1 == 0 { sender.throttle.sentKeyFrame() }
      var packets = sender.packetizer.begin(frameByteCount: sealed.count)
      while let packet = packets.next() {
        let body = sealed.lowerBound + packet.body.lowerBound..<sealed.lowerBound + packet.body.upperBound
        write(
          sender, parameters, timestamp, marker: packet.marker, descriptor: packet.descriptor, body: body,
          at: now)
      }
    }
  }

  /// The next datagram to send, written to `buffer` (1,500 bytes or more).
  @_lifetime(buffer: copy buffer)
  public mutating func pollTransmit(into buffer: inout MutableSpan<UInt8>, at now: Instant) -> Transmit? {
    if let transmit = transport.pollTransmit(into: &buffer) { return transmit }
    guard let destination = transport.destination else { return nil }
    while !control.isEmpty {
      let packet = control.removeFirst()
      guard packet.count <= buffer.count else { continue }
      buffer.copyBytes(from: packet.span, at: 0)
      guard let count = transport.protect(&buffer, count: packet.count, isControl: true) else { continue }
      return Transmit(destination: destination, count: count)
    }
    while let entry = queue.pop() {
      guard let count = sender(entry.track)?.sent.copy(entry.sequenceNumber, into: &buffer) else { continue }
      return Transmit(destination: destination, count: count)
    }
    return nil
  }

  /// Puts the frame into `frameBuffer`, sealed with end-to-end encryption; returns where it lies there.
  private mutating func seal(
    _ frame: Span<UInt8>, _ sender: MediaSender, _ timestamp: RTPTimestamp, at now: Instant
  ) throws(SendError) -> Range<Int> {
    let needed = FrameProtection.headroom + frame.count + FrameProtection.tailroom(frame.count)
    if frameBuffer.count < needed { frameBuffer = [UInt8](repeating: 0, count: needed + needed / 2) }
    let range = FrameProtection.headroom..<FrameProtection.headroom + frame.count
    // Moved out and back: the key ring is used while the bytes are borrowed.
    var bytes: [UInt8] = []
    swap(&bytes, &frameBuffer)
    defer { swap(&bytes, &frameBuffer) }
    var buffer = bytes.mutableSpan
    buffer.copyBytes(from: frame, at: range.lowerBound)
    guard protection.isOn else { return range }
    do throws(SealError) {
      let sealed = try protection.seal(
        sender.sealer, in: &buffer, frame: range, timestamp: timestamp, at: now)
      lastSealed = sealed
      return sealed
    } catch {
      throw error == .noKey ? .noKey : .sealing(error)
    }
  }

  /// Writes one packet, protects it and keeps it for sending and for repairs.
  private mutating func write(
    _ sender: MediaSender, _ parameters: SendingParameters, _ timestamp: RTPTimestamp, marker: Bool,
    descriptor: VP8PayloadDescriptor?, body: Range<Int>, at now: Instant
  ) {
    var extensions = RTPExtensionValues()
    extensions.mid = parameters.mid
    if parameters.extensionIDs.transportSequenceNumber != 0 {
      extensions.transportSequenceNumber = transportSequence
      transportSequence &+= 1
    }
    if sender.track == .microphone { extensions.audioLevel = audioLevel }
    let header = RTPHeader(
      marker: marker, payloadType: parameters.payloadType, sequenceNumber: sender.takeSequence(),
      timestamp: timestamp, ssrc: sender.ssrc)
    var bytes: [UInt8] = []
    swap(&bytes, &packetBuffer)
    defer { swap(&bytes, &packetBuffer) }
    var packet = bytes.mutableSpan
    let count = packet.withOutput { output in
      RTPPacketWriter.writeHeader(header, extensions: extensions, ids: parameters.extensionIDs, into: &output)
      descriptor?.write(into: &output)
    }
    packet.copyBytes(from: frameBuffer.span.extracting(body), at: count)
    guard let size = transport.protect(&packet, count: count + body.count, isControl: false) else { return }
    sender.sent.store(header.sequenceNumber, packet.span.extracting(0..<size))
    sender.statistics.sent(header, payloadByteCount: body.count, at: now)
    queue.push(.init(track: sender.track, sequenceNumber: header.sequenceNumber))
  }
}
