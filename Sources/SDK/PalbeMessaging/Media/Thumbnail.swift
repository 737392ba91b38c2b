import Foundation

/// A small picture of a picture.
struct Thumbnail: Sendable {
  /// At most 32 KiB.
  var jpeg: Data
  /// Pixels of the picture itself, upright.
  var width: Int
  var height: Int

  /// Nil for what is no JPEG or PNG that can be read.
  @concurrent static func make(of picture: Data) async -> Thumbnail? { nil }
}
