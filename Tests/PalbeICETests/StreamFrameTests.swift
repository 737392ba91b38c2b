import PalbeICE
import PalbeUnits
import PalbeWire
import Testing

@Suite("RFC 4571: datagrams in a TCP stream")
struct StreamFrameTests {
  private func framed(_ datagrams: [[UInt8]]) -> [UInt8] {
    datagrams.flatMap { [UInt8($0.count >> 8), UInt8(truncatingIfNeeded: $0.count)] + $0 }
  }

  /// Feeds `bytes` in pieces of `size` and returns the frames that came out.
  private func read(
    _ bytes: [UInt8], pieces size: Int, limit: Int = 2_048, capacity: Int = 4_096
  ) throws(StreamFrameError) -> [[UInt8]] {
    var reader = StreamFrameReader(frameLimit: limit, capacity: capacity)
    var rest = bytes[...]
    var frames: [[UInt8]] = []
    while !rest.isEmpty {
      let isOpen = reader.fill { room in
        let count = min(size, room.count, rest.count)
        for index in 0..<count { room[index] = rest[rest.startIndex + index] }
        rest = rest.dropFirst(count)
        return count
      }
      #expect(isOpen)
      while try reader.advance() { reader.withFrame { frames.append([UInt8]($0.span)) } }
    }
    return frames
  }

  private func append(_ datagram: [UInt8], to queue: inout StreamFrameQueue) -> Bool {
    queue.append(datagram.span)
  }

  @Test(
    "§2: the length in two bytes, then the datagram, however TCP cuts the stream",
    arguments: [1, 2, 3, 7, 900, 5_000])
  func roundTrip(size: Int) throws {
    var random = RandomSource(seed: 4)
    let datagrams = (0..<60).map { _ in random.bytes(Int.random(in: 1...1_400, using: &random)) }
    var queue = StreamFrameQueue(capacity: 200_000)
    for datagram in datagrams { #expect(append(datagram, to: &queue)) }
    let bytes = [UInt8](queue.waiting)
    #expect(bytes == framed(datagrams))
    #expect(try read(bytes, pieces: size) == datagrams)
  }

  @Test("Golden bytes")
  func golden() throws {
    #expect(try read([0, 3, 1, 2, 3, 0, 0, 0, 1, 9], pieces: 4) == [[1, 2, 3], [9]])
  }

  @Test("A stream that ends anywhere gives the whole frames before that place and nothing else")
  func truncation() throws {
    let datagrams: [[UInt8]] = [[1], [2, 3], [4, 5, 6, 7]]
    let bytes = framed(datagrams)
    for length in bytes.indices {
      let frames = try read(Array(bytes[..<length]), pieces: 3)
      #expect(frames == Array(datagrams[..<frames.count]))
      #expect(framed(frames).count <= length)
    }
  }

  @Test("A longer frame than any datagram of a call ends the stream, before anything is kept for it")
  func tooLong() throws {
    #expect(throws: StreamFrameError.frameTooLong(count: 0xffff, limit: 2_048)) {
      try read([0xff, 0xff, 1], pieces: 3)
    }
    let longest = [UInt8](repeating: 7, count: 100)
    #expect(try read(framed([longest]), pieces: 5, limit: 100, capacity: 1) == [longest])
    #expect(throws: StreamFrameError.frameTooLong(count: 101, limit: 100)) {
      try read([0, 101], pieces: 2, limit: 100)
    }
  }

  @Test("A peer that does not read costs a bounded buffer: further frames are dropped whole")
  func bound() throws {
    var queue = StreamFrameQueue(capacity: 100)
    #expect(append([UInt8](repeating: 1, count: 40), to: &queue))
    #expect(append([UInt8](repeating: 2, count: 40), to: &queue))
    #expect(!append([UInt8](repeating: 3, count: 40), to: &queue))
    let dropped = queue.droppedCount
    #expect(dropped == 1)
    queue.written(50)
    #expect(append([UInt8](repeating: 4, count: 40), to: &queue))
    // The rest of the second frame comes first: what was begun is finished.
    let waiting = [UInt8](queue.waiting)
    #expect(waiting == [UInt8](repeating: 2, count: 34) + [0, 40] + [UInt8](repeating: 4, count: 40))
    queue.written(waiting.count)
    let isEmpty = queue.isEmpty
    #expect(isEmpty)
  }
}
