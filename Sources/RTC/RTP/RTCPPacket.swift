import PalbeUnits
import PalbeWire

/// One RTCP packet of a compound (RFC 3550 §6, RFC 4585, RFC 5104).
public enum RTCPPacket: Hashable, Sendable {
  /// SR, type 200.
  case senderReport(SenderReport)
  /// RR, type 201.
  case receiverReport(ReceiverReport)
  /// SDES, type 202: canonical names; its other items are not kept.
  case sourceDescription([SourceDescription])
  /// BYE, type 203.
  case goodbye(Goodbye)
  /// Generic NACK, type 205 format 1.
  case nack(GenericNACK)
  /// Transport-wide feedback, type 205 format 15.
  case transportFeedback(TransportFeedback)
  /// PLI, type 206 format 1.
  case pictureLossIndication(sender: SSRC, media: SSRC)
  /// FIR, type 206 format 4.
  case fullIntraRequest(FullIntraRequest)
  /// REMB, type 206 format 15.
  case receiverEstimate(ReceiverEstimate)
  /// A packet type or format that is not read here.
  case unknown(packetType: UInt8, format: UInt8)
}

/// A reception report on one source (RFC 3550 §6.4.1).
public struct ReportBlock: Hashable, Sendable, BitwiseCopyable {
  /// The source reported on.
  public var ssrc: SSRC
  /// Packets lost since the last report, in 1/256.
  public var fractionLost: UInt8
  /// Packets lost since the beginning, a signed 24-bit number: duplicates can make it negative.
  public var cumulativeLost: Int32
  /// Roll-over count in the upper half, highest sequence number in the lower.
  public var highestSequence: UInt32
  /// Interarrival jitter in ticks of the payload's clock.
  public var jitter: UInt32
  /// The middle of the last sender report's NTP time; zero before one came.
  public var lastSenderReport: UInt32
  /// Time since that report, in 1/65536 s.
  public var delaySinceLastSenderReport: UInt32

  /// Bytes on the wire.
  static let byteCount = 24

  /// From its fields.
  public init(
    ssrc: SSRC, fractionLost: UInt8, cumulativeLost: Int32, highestSequence: UInt32, jitter: UInt32,
    lastSenderReport: UInt32, delaySinceLastSenderReport: UInt32
  ) {
    self.ssrc = ssrc
    self.fractionLost = fractionLost
    self.cumulativeLost = max(-0x80_0000, min(0x7f_ffff, cumulativeLost))
    self.highestSequence = highestSequence
    self.jitter = jitter
    self.lastSenderReport = lastSenderReport
    self.delaySinceLastSenderReport = delaySinceLastSenderReport
  }
}

/// What a sender has sent, with the wall clock beside the media clock (RFC 3550 §6.4.1).
public struct SenderReport: Hashable, Sendable {
  /// The sender.
  public var ssrc: SSRC
  /// Wall-clock time of the report.
  public var ntpTime: NTPTime
  /// The same moment on the media clock.
  public var rtpTimestamp: RTPTimestamp
  /// Packets sent, modulo 2^32.
  public var packetCount: UInt32
  /// Payload bytes sent, modulo 2^32.
  public var octetCount: UInt32
  /// Up to 31 reports on what the sender receives.
  public var blocks: [ReportBlock]

  /// From its fields.
  public init(
    ssrc: SSRC, ntpTime: NTPTime, rtpTimestamp: RTPTimestamp, packetCount: UInt32, octetCount: UInt32,
    blocks: [ReportBlock] = []
  ) {
    self.ssrc = ssrc
    self.ntpTime = ntpTime
    self.rtpTimestamp = rtpTimestamp
    self.packetCount = packetCount
    self.octetCount = octetCount
    self.blocks = blocks
  }
}

/// What a receiver received (RFC 3550 §6.4.2).
public struct ReceiverReport: Hashable, Sendable {
  /// The receiver.
  public var ssrc: SSRC
  /// Up to 31 reports.
  public var blocks: [ReportBlock]

  /// From its fields.
  public init(ssrc: SSRC, blocks: [ReportBlock]) {
    self.ssrc = ssrc
    self.blocks = blocks
  }
}

/// The canonical name of a source (RFC 3550 §6.5.1).
public struct SourceDescription: Hashable, Sendable {
  /// The source.
  public var ssrc: SSRC
  /// Up to 255 bytes of UTF-8; nil when the chunk held none.
  public var canonicalName: String?

  /// From its fields.
  public init(ssrc: SSRC, canonicalName: String?) {
    self.ssrc = ssrc
    self.canonicalName = canonicalName
  }
}

/// Sources that leave (RFC 3550 §6.6).
public struct Goodbye: Hashable, Sendable {
  /// Up to 31 sources.
  public var sources: [SSRC]
  /// Why, up to 255 bytes of UTF-8.
  public var reason: String?

  /// From its fields.
  public init(sources: [SSRC], reason: String? = nil) {
    self.sources = sources
    self.reason = reason
  }
}

/// A request to send packets again (RFC 4585 §6.2.1).
public struct GenericNACK: Hashable, Sendable {
  /// A number and a bit mask of the sixteen that follow it.
  public struct Item: Hashable, Sendable, BitwiseCopyable {
    /// The first packet asked for (PID).
    public var first: SequenceNumber
    /// Bit i asks for `first` + i + 1 (BLP).
    public var following: UInt16

    /// From its fields.
    public init(first: SequenceNumber, following: UInt16) {
      self.first = first
      self.following = following
    }
  }

  /// Who asks.
  public var sender: SSRC
  /// Whose packets are missing.
  public var media: SSRC
  /// What is asked for.
  public var items: [Item]

  /// From its fields.
  public init(sender: SSRC, media: SSRC, items: [Item]) {
    self.sender = sender
    self.media = media
    self.items = items
  }

  /// Packs numbers, given in ascending order on the circle, into items.
  public init(sender: SSRC, media: SSRC, sequenceNumbers: [SequenceNumber]) {
    self.init(sender: sender, media: media, items: [])
    Self.forEachItem(of: sequenceNumbers) { items.append($0) }
  }

  /// Calls `body` with the items that numbers, in ascending order on the circle, are packed into.
  static func forEachItem(of sequenceNumbers: [SequenceNumber], _ body: (Item) -> Void) {
    var item: Item?
    for number in sequenceNumbers {
      let distance = item.map { number.distance(from: $0.first) }
      if let distance, (0...16).contains(distance) {
        if distance > 0 { item?.following |= 1 << UInt16(distance - 1) }
      } else {
        if let item { body(item) }
        item = Item(first: number, following: 0)
      }
    }
    if let item { body(item) }
  }

  /// Every number asked for, in the order of the items.
  public var sequenceNumbers: [SequenceNumber] {
    var numbers = [SequenceNumber]()
    forEach { numbers.append($0) }
    return numbers
  }

  /// Calls `body` with every number asked for, without allocating.
  @inlinable public func forEach(_ body: (SequenceNumber) -> Void) {
    for item in items {
      body(item.first)
      var mask = item.following
      while mask != 0 {
        body(item.first + (mask.trailingZeroBitCount + 1))
        mask &= mask - 1
      }
    }
  }
}

/// A demand for a key frame (RFC 5104 §4.3.1).
public struct FullIntraRequest: Hashable, Sendable {
  /// One source and the request's number; a repeat carries the same number.
  public struct Entry: Hashable, Sendable, BitwiseCopyable {
    /// Who shall send a key frame.
    public var ssrc: SSRC
    /// Counts requests.
    public var sequence: UInt8

    /// From its fields.
    public init(ssrc: SSRC, sequence: UInt8) {
      self.ssrc = ssrc
      self.sequence = sequence
    }
  }

  /// Who asks.
  public var sender: SSRC
  /// Whom.
  public var entries: [Entry]

  /// From its fields.
  public init(sender: SSRC, entries: [Entry]) {
    self.sender = sender
    self.entries = entries
  }
}

/// A receiver's estimate of what it can take (draft-alvestrand-rmcat-remb-03).
public struct ReceiverEstimate: Hashable, Sendable {
  /// Who estimates.
  public var sender: SSRC
  /// How much in total.
  public var rate: DataRate
  /// Which sources share it, up to 255.
  public var sources: [SSRC]

  /// From its fields.
  public init(sender: SSRC, rate: DataRate, sources: [SSRC]) {
    self.sender = sender
    self.rate = rate
    self.sources = sources
  }
}
