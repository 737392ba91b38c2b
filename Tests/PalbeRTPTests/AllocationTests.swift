import CPalbeMallocCounter
import PalbeRTP
import PalbeUnits
import Testing

@Suite("No allocation a packet")
struct AllocationTests {
  /// Heap allocations of 100 runs of `body`, after 3 to warm up.
  func allocations(_ body: (Int) throws -> Void) rethrows -> UInt64 {
    for run in 0..<3 { try body(run) }
    let before = palbe_malloc_count()
    for run in 3..<103 { try body(run) }
    return palbe_malloc_count() - before
  }

  @Test("The counter counts: an array is one allocation")
  func counter() {
    #expect(allocations { _ in _ = [UInt8](repeating: 1, count: 64) } >= 100)
  }

  @Test("Forwarding: parse, read extensions, rewrite header and descriptor, store, look up")
  func forwarding() throws {
    let (values, ids) = allExtensions()
    let payload = hex("90e0 f4d2 2a 60 10") + [UInt8](repeating: 7, count: 1_000)
    let source = packet(extensions: values, ids: ids, payload: payload)
    var target = [UInt8](repeating: 0, count: 1_500)
    var cache = RetransmissionCache(capacity: 64)
    let (_, otherIDs) = allExtensions(firstID: 5)
    let count = try allocations { run in
      let parsed = try RTPHeader.parse(source.span)
      var read = ids.read(parsed, in: source.span)
      read.transportSequenceNumber = UInt16(run)
      var header = parsed
      header.sequenceNumber = SequenceNumber(UInt16(run))
      header.ssrc = SSRC(99)
      let body = parsed.payloadRange(in: source.span)
      let descriptor = try VP8PayloadDescriptor.parse(source.span.extracting(body))
      var span = target.mutableSpan
      let layout = try RTPPacketWriter.rewriteHeader(
        of: source.span, parsed: parsed, as: header, extensions: read, ids: otherIDs, into: &span)
      try descriptor.rewrite(
        in: &span, at: layout.headerByteCount, pictureID: UInt16(run), tl0PictureIndex: UInt8(run))
      span.setRTP(timestamp: RTPTimestamp(5))
      cache.store(header.sequenceNumber, target.span.extracting(0..<layout.byteCount))
      guard cache.lookup(header.sequenceNumber) != nil else { throw CancellationError() }
    }
    #expect(count == 0)
  }

  @Test("RTX wraps and unwraps")
  func rtx() throws {
    var buffer = packet(payload: [UInt8](repeating: 1, count: 500)) + [0, 0]
    let count = try allocations { _ in
      var span = buffer.mutableSpan
      let wrapped = try RTX.wrap(
        &span, count: 512, payloadType: PayloadType(97), ssrc: SSRC(2), sequenceNumber: SequenceNumber(3))
      _ = try RTX.unwrap(&span, count: wrapped, payloadType: PayloadType(96), ssrc: SSRC(1))
    }
    #expect(count == 0)
  }

  // A refused packet cannot be measured here: Swift Testing boxes every thrown error to keep its backtrace.
  @Test("Receiving: gaps and statistics")
  func receiving() throws {
    let source = packet(payload: [1, 2, 3])
    var tracker = NackTracker()
    var statistics = ReceiverStatistics(ssrc: SSRC(1), clockRate: 90_000)
    let count = try allocations { run in
      let header = try RTPHeader.parse(source.span)
      statistics.update(header, payloadByteCount: 3, arrival: Instant(nanoseconds: Int64(run)))
      _ = tracker.received(ExtendedSequenceNumber(UInt64(run) * 2), at: .zero)
    }
    #expect(count == 0)
  }
}
