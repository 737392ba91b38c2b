import PalbeRTP
import PalbeUnits
import PalbeWire
import Testing

/// Bytes from hexadecimal with spaces.
func hex(_ text: String) -> [UInt8] {
  Hex.decode(text.filter { !$0.isWhitespace }) ?? []
}

/// Writes with `body` into a fresh buffer of at most `capacity` bytes.
func written(_ capacity: Int, _ body: (inout OutputSpan<UInt8>) -> Void) -> [UInt8] {
  [UInt8](capacity: capacity) { output in body(&output) }
}

/// A packet with that payload.
func packet(
  _ sequence: UInt16 = 1, timestamp: UInt32 = 0, marker: Bool = false, payloadType: UInt8 = 96,
  ssrc: UInt32 = 0x1234,
  extensions: RTPExtensionValues = RTPExtensionValues(), ids: RTPExtensionIDs = RTPExtensionIDs(),
  payload: [UInt8]
) -> [UInt8] {
  let header = RTPHeader(
    marker: marker, payloadType: PayloadType(payloadType), sequenceNumber: SequenceNumber(sequence),
    timestamp: RTPTimestamp(timestamp), ssrc: SSRC(ssrc))
  return written(1_600) { output in
    RTPPacketWriter.writeHeader(header, extensions: extensions, ids: ids, into: &output)
    output.append(contentsOf: payload.span)
  }
}

/// Every RTCP packet of a datagram.
func read(_ datagram: [UInt8]) throws(WireError) -> [RTCPPacket] {
  var packets: [RTCPPacket] = []
  var reader = RTCPReader(datagram.span)
  while let packet = try reader.next() { packets.append(packet) }
  return packets
}

/// Every extension this project knows, under ids 1 to 7.
func allExtensions(firstID: UInt8 = 1) -> (RTPExtensionValues, RTPExtensionIDs) {
  var values = RTPExtensionValues()
  values.audioLevel = AudioLevel(isVoice: true, level: 30)
  values.videoOrientation = 1
  values.absoluteSendTime = AbsoluteSendTime(rawValue: 0x123456)
  values.transportSequenceNumber = 0xfffe
  values.mid = ShortText("0")
  values.rid = ShortText("q")
  values.repairedRID = ShortText("sixteen-letters!")
  var ids = RTPExtensionIDs()
  ids.audioLevel = firstID
  ids.videoOrientation = firstID + 1
  ids.absoluteSendTime = firstID + 2
  ids.transportSequenceNumber = firstID + 3
  ids.mid = firstID + 4
  ids.rid = firstID + 5
  ids.repairedRID = firstID + 6
  return (values, ids)
}

/// `#require` for calls that mutate, which the macro cannot take apart.
func unwrapped<T>(_ value: T?) throws -> T { try #require(value) }
