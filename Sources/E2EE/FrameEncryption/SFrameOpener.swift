import PalbeCrypto
import PalbeWire

/// Opens frames under one SFrame key (RFC 9605 §4.4.4) and refuses what it opened before.
public struct SFrameOpener: ~Copyable, Sendable {
  /// KID of the frames it opens.
  public let keyID: UInt64

  private let salt: SymmetricKey
  private var context: AEADContext
  private var window = ReplayWindow()

  /// Derives the key.
  public init(suite: SFrameCipherSuite, keyID: UInt64, baseKey: Span<UInt8>) throws(CryptoError) {
    let derived = SFrameKey(suite: suite, keyID: keyID, baseKey: baseKey)
    context = try AEADContext(suite.algorithm, key: derived.key.span, direction: .open)
    salt = derived.salt.copy()
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
    return try open(in: &buffer, frame: frame, header: header, metadata: metadata)
  }

  /// As above with the header already read.
  @_lifetime(buffer: copy buffer)
  mutating func open(
    in buffer: inout MutableSpan<UInt8>, frame: Range<Int>, header: SFrameHeader, metadata: Span<UInt8>
  ) throws(OpenFailure) -> Range<Int> {
    let start = frame.lowerBound + header.byteCount
    let end = frame.upperBound - SFrameCipherSuite.tagByteCount
    guard start <= end else { throw .malformed }
    guard end - start <= SFrameSealer.maximumFrameByteCount else { throw .tooLong }
    guard header.keyID == keyID else { throw .unknownKey }
    switch window.verdict(on: header.counter) {
    case .fresh: break
    case .replayed: throw .replayed
    case .tooOld: throw .tooOld
    }
    var nonce = InlineArray<12, UInt8>(repeating: 0)
    var nonceBytes = nonce.mutableSpan
    SFrameKey.writeNonce(salt: salt, counter: header.counter, into: &nonceBytes)
    let length = header.byteCount
    do throws(CryptoError) {
      if length + metadata.count <= AssociatedData.capacity {
        let aad = AssociatedData(
          header: buffer.span, at: frame.lowerBound, length: length, metadata: metadata)
        try context.open(in: &buffer, body: start..<end, authenticating: aad.span, nonce: nonce.span)
      } else {
        try context.open(
          in: &buffer, body: start..<end, authenticating: frame.lowerBound..<start, metadata,
          nonce: nonce.span)
      }
    } catch {
      throw .notAuthentic
    }
    window.mark(header.counter)
    return start..<end
  }
}
