import PalbeRTP
import PalbeUnits
import PalbeWire

/// The packets that were received and are still to be forwarded, and where forwarding stands.
///
///     received:   v1 v2 a1 v3          (v, a: packets of two tracks)
///     forwarded:  v1 v2 v3 to the first subscriber of v, v1 v2 v3 to the second, …, then a1 to each of a's
///
/// A subscriber's packets leave one behind the other, so that the kernel can take them as one (UDP_SEGMENT). It does so only
/// with packets of one length, the last excepted: packets of a frame that are a few bytes shorter than its longest one
/// are evened out by RTP padding.
@safe struct MediaBatch: ~Copyable {
  /// Packets at most.
  static let capacity = 64
  /// Padding costs these bytes of a packet at most.
  static let paddingLimit = 8

  /// One more than the capacity: the place of the next one.
  private let packets: UnsafeMutablePointer<MediaPacket>
  /// For each packet, the next one of its track; itself where there is none.
  private var following = InlineArray<64, UInt8>(repeating: 0)
  /// Whether no packet of its track lies before it.
  private var isFirst = InlineArray<64, Bool>(repeating: false)
  private(set) var count = 0
  /// What the last datagram carried.
  private var latest: Int?
  /// The first packet of the track that is being forwarded, and who gets it.
  private var first = 0
  private var lanes: [DownTrack] = []
  /// The subscriber that is being written to, and the packet it gets next.
  private var lane = 0
  private var current = 0
  /// Forwarding has begun.
  private(set) var isStarted = false

  init() {
    unsafe packets = .allocate(capacity: Self.capacity + 1)
    for index in 0...Self.capacity { unsafe (packets + index).initialize(to: MediaPacket()) }
  }

  deinit {
    unsafe packets.deinitialize(count: Self.capacity + 1)
    unsafe packets.deallocate()
  }

  var isFull: Bool { count == Self.capacity }

  /// Nothing more to forward. The bytes of the last packet stay for whoever looks at them.
  mutating func removeAll() {
    for index in 0..<count { unsafe packets[index].stop() }
    count = 0
    first = 0
    lane = 0
    current = 0
    lanes = []
    isStarted = false
  }

  subscript(index: Int) -> MediaPacket {
    unsafeAddress { unsafe UnsafePointer(packets + index) }
  }

  /// A datagram comes that may be none of these.
  mutating func beginDatagram() { latest = nil }

  /// Takes a packet that `participant` sent; it waits to be forwarded if it carries anything for others.
  mutating func receive(_ packet: Span<UInt8>, from participant: Participant, at now: Instant) {
    latest = count
    unsafe packets[count].load(packet)
    if unsafe participant.receive(&packets[count], at: now) { commit() }
  }

  /// Shows the packet of the last datagram; nothing when it was none.
  func withReceived(_ body: (Span<UInt8>) -> Void) {
    guard let latest, unsafe packets[latest].count > 0 else { return }
    unsafe body(packets[latest].span)
  }

  /// The packet in the next place is to be forwarded.
  private mutating func commit() {
    let index = count
    following[index] = UInt8(truncatingIfNeeded: index)
    isFirst[index] = true
    count += 1
    guard let track = unsafe packets[index].track else { return }
    var earlier = index - 1
    while earlier >= 0, unsafe packets[earlier].track !== track { earlier -= 1 }
    guard earlier >= 0 else { return }
    following[earlier] = UInt8(truncatingIfNeeded: index)
    isFirst[index] = false
  }

  /// The next packet to forward, and who gets it.
  mutating func next() -> (index: Int, downTrack: DownTrack)? {
    if !isStarted {
      isStarted = true
      begin()
    }
    while first < count {
      if lane < lanes.count {
        let index = current
        let downTrack = lanes[lane]
        current = Int(following[index])
        if current == index {
          lane += 1
          current = first
        }
        return (index, downTrack)
      }
      first += 1
      begin()
    }
    removeAll()
    return nil
  }

  /// The packets of the track whose first one is in place `first`, if there is one, are next.
  private mutating func begin() {
    lane = 0
    current = first
    lanes = []
    guard first < count, isFirst[first], let track = unsafe packets[first].track else { return }
    lanes = track.downTracks
    even(from: first)
  }

  /// Gives the packets of each frame of a track one length where little is missing. The last may be shorter.
  private mutating func even(from start: Int) {
    var begin = start
    while true {
      var longest = unsafe packets[begin].payloadByteCount
      var end = begin
      while Int(following[end]) != end, unsafe packets[Int(following[end])].isOfFrame(packets[begin]) {
        end = Int(following[end])
        longest = max(longest, unsafe packets[end].payloadByteCount)
      }
      var index = begin
      while index != end {
        let missing = unsafe longest - packets[index].payloadByteCount
        if missing <= Self.paddingLimit { unsafe packets[index].padding = missing }
        index = Int(following[index])
      }
      guard Int(following[end]) != end else { return }
      begin = Int(following[end])
    }
  }
}
