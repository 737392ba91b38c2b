import PalbeUnits
import PalbeWire

/// A frame put together from its packets.
public struct VP8AssembledFrame: Sendable {
  /// The encoded frame, without descriptors.
  public var bytes: [UInt8]
  /// When it was sampled, on the 90 kHz clock.
  public var timestamp: RTPTimestamp
  /// The frame needs no other to be decoded.
  public var isKeyFrame: Bool
  /// The descriptor of its first packet.
  public var descriptor: VP8PayloadDescriptor
  /// The first packet's number.
  public var firstSequence: ExtendedSequenceNumber
  /// The last packet's number.
  public var lastSequence: ExtendedSequenceNumber
  /// When its last missing packet arrived.
  public var completedAt: Instant
}

/// Collects VP8 packets in any order within a window, and gives complete frames in decoding order.
///
/// ## Overview
///
///     insert(packet) ─► window of slots by sequence number ─► nextFrame()
///                         │ next: where the next frame must start
///
/// A frame is complete when every packet is there from one that starts partition 0 to one with the marker bit.
/// `nextFrame` gives frames without a gap between them. Where a packet is missing, frames wait: the owner asks for
/// it again, and when it gives up calls `skipToKeyFrame`. Nothing is given out before the first key frame.
///
/// ## Bounds
///
/// The window's memory is reserved once: `capacity` slots of 1,500 bytes, touched as they are used. A packet that
/// lies a window or more ahead empties the window: the stream has jumped, and starts again at a key frame.
public struct VP8FrameAssembler: ~Copyable {
  /// What became of a packet.
  public enum Insertion: Hashable, Sendable {
    /// It is in the window.
    case stored
    /// It was there before, or its frame was given out or skipped.
    case old
    /// Its payload is malformed or too long.
    case malformed
    /// It lies too far ahead: the window was emptied, and frames start again at a key frame.
    case restarted
  }

  struct Slot: BitwiseCopyable {
    enum Kind: UInt8, BitwiseCopyable { case empty, padding, payload }
    var kind = Kind.empty
    var startsFrame = false
    var isKeyFrame = false
    var marker = false
    var byteCount = 0
    var sequence: UInt64 = 0
    var timestamp = RTPTimestamp(0)
    var descriptor = VP8PayloadDescriptor(startsPartition: false)
    var arrival = Instant.zero
  }

  static let slotByteCount = 1_500

  var bytes: [UInt8]
  /// A slot is valid for the number it names, and only from `floor` on; nothing is ever cleared.
  var slots: [Slot]
  let mask: UInt64
  /// Numbers below are not taken any more; all that are stored lie within one window from here.
  var floor: UInt64 = 0
  var highest: UInt64?
  /// False until a key frame was found: then a frame must start at `floor`.
  var isSynchronized = false

  /// - Parameter capacity: packets in the window, rounded up to a power of two of at most 16,384.
  public init(capacity: Int = 1_024) {
    var size = 16
    while size < min(capacity, 16_384) { size *= 2 }
    mask = UInt64(size - 1)
    slots = [Slot](repeating: Slot(), count: size)
    // Left uninitialised: bytes are plain values, and none is read before `insert` wrote it.
    unsafe bytes = [UInt8](unsafeUninitializedCapacity: size * Self.slotByteCount) { _, count in
      count = size * Self.slotByteCount
    }
  }

  /// Takes up the payload of one packet. An empty payload (padding alone) only fills its place.
  @discardableResult
  public mutating func insert(
    _ payload: Span<UInt8>, header: RTPHeader, sequence: ExtendedSequenceNumber, at now: Instant
  ) -> Insertion {
    let number = sequence.rawValue
    guard number >= floor, !isFilled(number) else { return .old }
    guard let slot = parse(payload, header, number, now) else { return .malformed }
    let index = Int(number & mask)
    var outcome = Insertion.stored
    if number - floor > mask {
      // While no frame was given out the window slides; afterwards a packet this far ahead means a jump.
      outcome = isSynchronized ? .restarted : .stored
      floor = number - mask
      isSynchronized = false
    }
    slots[index] = slot
    if slot.byteCount > 0 {
      var all = bytes.mutableSpan
      let body = payload.extracting(slot.descriptor.byteCount..<payload.count)
      all.copyBytes(from: body, at: index * Self.slotByteCount)
    }
    highest = max(highest ?? number, number)
    return outcome
  }

  /// The next frame in decoding order, nil while one of its packets is missing.
  public mutating func nextFrame() -> VP8AssembledFrame? {
    guard isSynchronized || skipToKeyFrame() else { return nil }
    while isFilled(floor), slots[Int(floor & mask)].kind == .padding { floor += 1 }
    guard let end = endOfFrame(from: floor) else {
      // A packet that starts no frame where one must start: its head can never come.
      if isFilled(floor), !slots[Int(floor & mask)].startsFrame { isSynchronized = false }
      return nil
    }
    let frame = assemble(floor...end)
    floor = end + 1
    return frame
  }

  /// Drops everything before the first complete key frame in the window, or before none when there is none.
  ///
  /// - Returns: true when `nextFrame` has a key frame to give.
  public mutating func skipToKeyFrame() -> Bool {
    guard let highest, highest >= floor else { return false }
    for number in floor...highest {
      let slot = slots[Int(number & mask)]
      guard isFilled(number), slot.startsFrame, slot.isKeyFrame, endOfFrame(from: number) != nil else {
        continue
      }
      floor = number
      isSynchronized = true
      return true
    }
    return false
  }

  /// The packet that frames wait for while later ones are there; nil when nothing is missing.
  public var missing: ExtendedSequenceNumber? {
    guard isSynchronized, let highest, highest >= floor else { return nil }
    for number in floor...highest where !isFilled(number) { return ExtendedSequenceNumber(number) }
    return nil
  }

  /// True while no frame can be given out before a key frame comes.
  public var needsKeyFrame: Bool { !isSynchronized }

  private func isFilled(_ number: UInt64) -> Bool {
    let slot = slots[Int(number & mask)]
    return slot.kind != .empty && slot.sequence == number
  }

  private func parse(
    _ payload: Span<UInt8>, _ header: RTPHeader, _ number: UInt64, _ now: Instant
  ) -> Slot? {
    var slot = Slot()
    slot.sequence = number
    slot.timestamp = header.timestamp
    slot.arrival = now
    slot.marker = header.marker
    guard payload.count > 0 else {
      slot.kind = .padding
      return slot
    }
    guard let descriptor = try? VP8PayloadDescriptor.parse(payload) else { return nil }
    let count = payload.count - descriptor.byteCount
    guard count > 0, count <= Self.slotByteCount else { return nil }
    slot.kind = .payload
    slot.descriptor = descriptor
    slot.startsFrame = descriptor.startsFrame
    slot.isKeyFrame = descriptor.isKeyFrame(in: payload)
    slot.byteCount = count
    return slot
  }

  /// The last packet of the frame that starts at `start`, nil when it is not complete.
  private func endOfFrame(from start: UInt64) -> UInt64? {
    guard isFilled(start), slots[Int(start & mask)].startsFrame else { return nil }
    let timestamp = slots[Int(start & mask)].timestamp
    var number = start
    while number - start <= mask, isFilled(number) {
      let slot = slots[Int(number & mask)]
      if slot.kind == .padding || slot.timestamp != timestamp {
        // A sender that sets no marker: the frame ends where the next one starts.
        return slot.startsFrame && number > start ? number - 1 : nil
      }
      if slot.marker { return number }
      number += 1
    }
    return nil
  }

  private func assemble(_ range: ClosedRange<UInt64>) -> VP8AssembledFrame {
    let first = slots[Int(range.lowerBound & mask)]
    var total = 0
    var completed = first.arrival
    for number in range {
      total += slots[Int(number & mask)].byteCount
      completed = max(completed, slots[Int(number & mask)].arrival)
    }
    let frame = [UInt8](capacity: total) { output in
      for number in range {
        let index = Int(number & mask)
        let start = index * Self.slotByteCount
        output.append(contentsOf: bytes.span.extracting(start..<start + slots[index].byteCount))
      }
    }
    return VP8AssembledFrame(
      bytes: frame, timestamp: first.timestamp, isKeyFrame: first.isKeyFrame, descriptor: first.descriptor,
      firstSequence: ExtendedSequenceNumber(range.lowerBound),
      lastSequence: ExtendedSequenceNumber(range.upperBound), completedAt: completed)
  }
}
