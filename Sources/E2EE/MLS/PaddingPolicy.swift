/// How many zeros follow a content before it is encrypted, RFC 9420 §6.3.1, so that lengths tell less.
///
/// Lengths here are those of the padded plaintext: content, signature (and in a commit the confirmation tag) and zeros.
public enum PaddingPolicy: Sendable, Hashable {
  /// None: lengths show.
  case none
  /// Up to the next multiple of this many bytes.
  case multiple(of: Int)
  /// Up to the next power of two, `minimum` at least: an observer learns one of some twenty lengths, and a message
  /// takes at most twice its bytes.
  case powerOfTwo(minimum: Int)
  /// Up to the smallest of these lengths that fits; above the largest, up to its next multiple.
  case buckets([Int])

  /// No plaintext is longer: a vector of the wire has at most 2^30 - 1 bytes (RFC 9420 §2.1.2).
  private static let longest = 1 << 29

  func padding(for count: Int) -> Int {
    let target: Int
    switch self {
    case .none: return 0
    case .multiple(let block): target = Self.roundUp(count, to: block)
    case .powerOfTwo(let minimum):
      guard count <= Self.longest else { return 0 }
      var length = 1
      while length < count || length < min(minimum, Self.longest) { length *= 2 }
      target = length
    case .buckets(let lengths):
      let fitting = lengths.filter { $0 >= count }.min()
      target = fitting ?? Self.roundUp(count, to: lengths.max() ?? 0)
    }
    return target <= Self.longest ? target - count : 0
  }

  private static func roundUp(_ count: Int, to block: Int) -> Int {
    guard block > 1, block <= longest else { return count }
    return (count + block - 1) / block * block
  }
}
