import PalbeCrypto
import PalbeWire

/// Opens frames under one SFrame key (RFC 9605 §4.4.4) and refuses what it opened before.
public struct SFrameOpener: ~Copyable, Sendable {
  /// KID of the frames it opens.
  public let keyID: UInt64

  private let salt: FrameSalt
  private var context: AEADContext
  private var window = ReplayWindow()

  /// Derives the key.
  public init(suite: SFrameCipherSuite, keyID: UInt64, baseKey: Span<UInt8>) throws(CryptoError) {
    let derived = SFrameKey(suite: suite, keyID: keyID, baseKey: baseKey)
    context = try AEADContext(suite.algorithm, key: derived.key.span, direction: .open)
    salt = FrameSalt(derived.salt.span)
    self.keyID = keyID
  }

  /// Opens header, ciphertext and tag at `buffer[frame]` in place; returns where the plaintext lies.
  ///
  /// Throws `unknownKey` for another key id, `replayed` or `tooOld` for a counter seen before or more than 4,095
  /// behind the newest, and `notAuthentic`, after which the ciphertext is wiped. Only an authentic frame moves the
  /// replay window.
  @_lifetime(buffer: copy buffer)
  public mutating func open(
    in buffer: inout MutableSpan<UInt8>, frame: Range<Int>, metadata: Span<UInt8>
  ) throws(OpenFailure) -> Range<Int> {
    guard frame.lowerBound >= 0, frame.upperBound <= buffer.count else { throw .malformed }
    let header: SFrameHeader
    do throws(WireError) {
      header = try SFrameHeader.parse(buffer.span.extracting(frame))
    } catch {
      throw .malformed
    }
    let body = try check(header, at: frame.lowerBound, end: frame.upperBound)
    let nonce = FrameNonce(salt: salt, counter: header.counter)
    do throws(CryptoError) {
      if header.byteCount + metadata.count <= AssociatedData.capacity {
        var aad = AssociatedData()
        aad.set(header, metadata: metadata)
        try context.open(in: &buffer, body: body, authenticating: aad.span, nonce: nonce.span)
      } else {
        try context.open(
          in: &buffer, body: body, authenticating: frame.lowerBound..<body.lowerBound, metadata,
          nonce: nonce.span)
      }
    } catch {
      throw .notAuthentic
    }
    window.mark(header.counter)
    return body
  }

  /// Opens a frame whose header, read already, begins at `start`; returns where the plaintext lies.
  @inline(__always) @_lifetime(buffer: copy buffer)
  mutating func open(
    in buffer: inout MutableSpan<UInt8>, from start: Int, to end: Int, header: SFrameHeader,
    source: FrameSource, clear: ClearBytes
  ) throws(OpenFailure) -> Range<Int> {
    let body = try check(header, at: start, end: end)
    var aad = AssociatedData()
    aad.set(header, source: source, clear: clear)
    let nonce = FrameNonce(salt: salt, counter: header.counter)
    do throws(CryptoError) {
      try context.open(in: &buffer, body: body, authenticating: aad.span, nonce: nonce.span)
    } catch {
      throw .notAuthentic
    }
    window.mark(header.counter)
    return body
  }

  /// Everything that can be said without the key. Returns where the ciphertext lies.
  @inline(__always)
  private func check(_ header: SFrameHeader, at start: Int, end: Int) throws(OpenFailure) -> Range<Int> {
    let first = start + header.byteCount
    let last = end - SFrameCipherSuite.tagByteCount
    guard first <= last else { throw .malformed }
    guard last - first <= SFrameSealer.maximumFrameByteCount else { throw .tooLong }
    guard header.keyID == keyID else { throw .unknownKey }
    switch window.verdict(on: header.counter) {
    case .fresh: return first..<last
    case .replayed: throw .replayed
    case .tooOld: throw .tooOld
    }
  }
}
