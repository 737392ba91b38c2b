/// Lengths that tell little: a message and an attachment are as long as the next of a few sizes.
///
/// A size is a multiple of a grain, and the grain is a sixteenth of the length, rounded up to a power of two, and a
/// minimum at least. Above sixteen minimums an octave has eight sizes, each at least a sixteenth (6.25 %) above the one
/// before: a length is not known better than that. It costs at most an eighth.
package enum Padding {
  /// The grain of messages.
  package static let messageGrain = 256
  /// The grain of attachments.
  package static let attachmentGrain = 4 << 10

  /// How long `count` bytes are when they are padded; `grain` is the least, a power of two. Nothing is padded too. `count`
  /// is what a limit was held against: 0 at least, and no more than a file may have.
  package static func paddedByteCount(for count: Int64, grain: Int) -> Int64 {
    let sixteenth = max(Int64(grain), (count + 15) / 16)
    let powerOfTwo = Int64(1) << Int64(64 - (sixteenth - 1).leadingZeroBitCount)
    return max(1, (count + powerOfTwo - 1) / powerOfTwo) * powerOfTwo
  }

  /// Appends 0x80 and zeros (ISO/IEC 7816-4), so that the content's end is found again.
  package static func pad(_ message: inout [UInt8]) {
    message.append(0x80)
    let count = Int(paddedByteCount(for: Int64(message.count), grain: messageGrain))
    message.append(contentsOf: repeatElement(0, count: count - message.count))
  }

  /// How many bytes the message in `padded` has; nil when the last byte that is not zero is not 0x80. How much padding
  /// there is, is the sender's affair.
  package static func messageByteCount(in padded: Span<UInt8>) -> Int? {
    var end = padded.count
    while end > 0, padded[end - 1] == 0 { end -= 1 }
    return end > 0 && padded[end - 1] == 0x80 ? end - 1 : nil
  }
}
