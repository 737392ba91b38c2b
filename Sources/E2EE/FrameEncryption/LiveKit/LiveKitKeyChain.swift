import PalbeCrypto
import PalbeUnits

/// One step of a chain: a key with its ciphers. A class, because what cannot be copied has no place in an array.
final class LiveKitKeyStep {
  let key: LiveKitKey
  private(set) var opener: AEADContext?
  private(set) var sealer: AEADContext?

  init(_ key: consuming LiveKitKey) { self.key = key }

  /// True when it opened; else `buffer[body]` is zeros.
  @_lifetime(buffer: copy buffer)
  func open(
    in buffer: inout MutableSpan<UInt8>, body: Range<Int>, clear: Range<Int>, iv: LiveKitIV
  ) -> Bool {
    do throws(CryptoError) {
      if opener == nil { opener = try key.cipher(.open) }
      let nonce = iv.inlineBytes
      try opener!.open(in: &buffer, body: body, authenticating: clear, nonce: nonce.span)
      return true
    } catch {
      return false
    }
  }

  @_lifetime(buffer: copy buffer)
  func seal(
    in buffer: inout MutableSpan<UInt8>, body: Range<Int>, clear: Range<Int>, iv: LiveKitIV
  ) throws(CryptoError) {
    if sealer == nil { sealer = try key.cipher(.seal) }
    let nonce = iv.inlineBytes
    try sealer!.seal(in: &buffer, body: body, authenticating: clear, nonce: nonce.span)
  }
}

/// A key that was set, and the steps ratcheted from it so far.
///
/// Steps are derived once and kept, so that frames nobody can open cost at most a window of derivations in all. Numbers go on
/// when the front is dropped.
final class LiveKitKeyChain {
  /// Steps held at most: a key shared by all is kept from where the slowest participant stands.
  static let limit = 512
  /// How often a slow derivation may be made for frames that do not open.
  static let pace = TimeDelta.seconds(1)

  private var steps: [LiveKitKeyStep]
  private var first = 0
  private var nextDerivation = Instant(nanoseconds: .min)

  init(_ key: consuming LiveKitKey) { steps = [LiveKitKeyStep(key)] }

  /// The number of the oldest step held.
  var start: Int { first }

  /// The step of that number; nil when it was dropped or is not derived yet.
  func step(_ number: Int) -> LiveKitKeyStep? {
    number >= first && number - first < steps.count ? steps[number - first] : nil
  }

  /// The step of that number, derived when it is the next one and the pace allows it.
  func step(_ number: Int, derivingAt now: Instant) -> LiveKitKeyStep? {
    if let step = step(number) { return step }
    guard number == first + steps.count, steps.count < Self.limit, now >= nextDerivation else { return nil }
    if steps[0].key.derivation.isSlow { nextDerivation = now + Self.pace }
    return derive()
  }

  /// The step of that number, derived at once when it is the next one.
  func requireStep(_ number: Int) -> LiveKitKeyStep? {
    if let step = step(number) { return step }
    guard number == first + steps.count, steps.count < Self.limit else { return nil }
    return derive()
  }

  private func derive() -> LiveKitKeyStep {
    let step = LiveKitKeyStep(steps[steps.count - 1].key.ratcheted())
    steps.append(step)
    return step
  }

  /// Wipes the steps in front of that number.
  func drop(before number: Int) {
    let count = min(max(0, number - first), steps.count - 1)
    steps.removeFirst(count)
    first += count
  }
}
