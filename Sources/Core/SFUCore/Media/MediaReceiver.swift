import PalbeCongestion
import PalbeRTP
import PalbeUnits

extension Participant {
  /// What a packet gains on its way to a subscriber: its number, and SRTP's tag.
  private static let addedByteCount = 20

  /// Looks at an RTP packet of this participant's, which SRTP has authenticated: true, and marked to be forwarded, if it
  /// carries media of a published track that was not seen before. No allocation once its source is known.
  func receive(_ packet: inout MediaPacket, at now: Instant) -> Bool {
    guard packet.parse(uplink.ids) else { return false }
    if let number = packet.extensions.transportSequenceNumber {
      uplink.feedback.record(transportSequence: number, at: now)
      if let deadline = uplink.feedback.nextDeadline { wake(at: deadline) }
    }
    guard var stream = uplink.stream(packet.header.ssrc, packet.extensions) else {
      // Late packets of tracks that are gone must not fill SRTP's table of sources.
      if uplink.isRetired(packet.header.ssrc) { transport.forgetSource(packet.header.ssrc) }
      return false
    }
    guard let section = stream.track.section else { return false }
    stream.note(packet.header, payloadByteCount: packet.payloadByteCount, at: now)
    if case .repair(let repaired) = stream.role {
      guard packet.header.payloadType == section.repairPayloadType,
        packet.unwrapRepair(of: repaired, payloadType: section.payloadType)
      else { return false }
      stream = repaired
    }
    guard section.carries(packet.header.payloadType), packet.parsePayload(of: section),
      let sequence = stream.admit(packet.header.sequenceNumber, at: now)
    else { return false }
    packet.readLayers(of: stream, sequence: sequence)
    let byteCount = packet.count + Self.addedByteCount
    if let layers = packet.layers {
      stream.meter.note(byteCount: byteCount, layers, at: now)
      if layers.startsFrame, layers.spatial == 0 { stream.meter.noteFrame(layer: layers.temporal) }
    } else {
      stream.meter.note(byteCount: byteCount, layer: packet.temporalLayer, at: now)
      if packet.header.marker { stream.meter.noteFrame(layer: packet.temporalLayer) }
    }
    if let deadline = stream.nackDeadline { wake(at: deadline) }
    // Clients go on with black pictures and silence, and one that an operator muted may go on as it likes.
    guard !stream.track.isMuted else { return false }
    if packet.startsKeyFrame { stream.keyFrames.rest() }
    if context.configuration.usesAudioLevels, let level = packet.extensions.audioLevel {
      stream.track.speech.note(level)
      if nextSpeechAt == .distantFuture { watchSpeech(from: now) }
    }
    packet.accept(on: stream, sequence: sequence)
    if !stream.track.downTracks.isEmpty { stream.remember(packet) }
    return true
  }
}
