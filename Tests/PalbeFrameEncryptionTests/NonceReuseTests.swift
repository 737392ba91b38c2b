import PalbeUnits
import Testing

@testable import PalbeFrameEncryption

@Suite("Nonces")
struct NonceReuseTests {
  /// What a frame key and nonce are made of.
  struct Slot: Hashable {
    let key: [UInt8]
    let room: String
    let identity: String
    let keyID: UInt64
    let counter: UInt64
  }

  @Test(
    "H1 to H7: over 40,000 random steps no (frame key, counter) seals two frames",
    arguments: [1, 2, 3] as [UInt64])
  func property(_ seed: UInt64) throws {
    var random = RandomSource(seed: seed)
    func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
    var configuration = CallKeyRing.Configuration()
    configuration.limits = SealLimits(frames: 50, bytes: 20_000)
    let ledger = CallKeyLedger()
    let identities = ["ada#phone", "ada#laptop", "bob"]
    let keys = (0..<200).map { callKey(UInt8($0)) }
    func peer(_ identity: String) throws -> Peer {
      // The random source starts over with each engine: the ledger has to hold alone.
      try Peer(identity, ledger: ledger, seed: seed, configuration: configuration)
    }
    var peers = try identities.map { try peer($0) }
    var tracks = [[FrameSenderID]](repeating: [], count: 3)
    var seen = Set<Slot>()
    var newest = 0
    var sealed = 0
    var repeats = 0
    var now = start
    for _ in 0..<40_000 {
      now += .milliseconds(pick(20))
      let index = pick(3)
      switch pick(200) {
      case 0:
        newest = min(newest + pick(2), keys.count - 1)
        let sending: SendSwitch = [.now, .whenConfirmed, .automatic][pick(3)]
        try? peers[index].install(keys[max(newest - pick(2), 0)], sending, at: now)
      case 1: peers[index].ring.confirmSendKey(at: now)
      case 2:
        peers[index] = try peer(identities[index])
        tracks[index] = []
        try peers[index].install(keys[newest], .now, at: now)
      case 3: tracks[index].append(try peers[index].sender())
      case 4: if let track = tracks[index].popLast() { peers[index].ring.removeSender(track) }
      default:
        if tracks[index].isEmpty { tracks[index].append(try peers[index].sender()) }
        let track = tracks[index][pick(tracks[index].count)]
        let frame = vp8(key: pick(30) == 0, pick(60), fill: UInt8(pick(256)))
        guard let bytes = try? peers[index].seal(track, frame, at: now) else { continue }
        let header = try header(of: bytes, clear: frame[0] & 1 == 0 ? 10 : 3)
        let held = peers[index].ring.state.sendKey
        let slot = Slot(
          key: held?.tag ?? [], room: "room-1", identity: identities[index], keyID: header.keyID,
          counter: header.counter)
        if !seen.insert(slot).inserted { repeats += 1 }
        sealed += 1
      }
    }
    #expect(sealed > 30_000)
    #expect(repeats == 0)
    #expect(seen.count == sealed)
  }

  @Test("A process draws no context twice, even when its random source repeats itself")
  func contexts() {
    let ledger = CallKeyLedger()
    var seen = Set<UInt64>()
    for _ in 0..<30 {
      var random = RandomSource(seed: 1)
      for _ in 0..<20 { seen.insert(ledger.freshContext(using: &random)) }
    }
    #expect(seen.count == 600)
  }
}
