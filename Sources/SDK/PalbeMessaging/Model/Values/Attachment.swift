public import Foundation
import Palbase
import PalbeChatCore
import PalbeUnits

/// A file in a chat: what to show of it before it is fetched, and how to fetch it (S0-56).
///
///     let bytes = try await attachment.fetchBlob()
///     for try await piece in attachment.fetchBlobStream() { handle.write(piece) }
public struct Attachment: Sendable {
  /// A name without a path.
  public let filename: String
  /// Such as `image/jpeg`; what the sender says.
  public let mimeType: String
  public let kind: AttachmentKind
  /// Bytes of the file.
  public let plaintextSize: Int
  /// A small picture, already decrypted; nil for files and voice (S0-57).
  public let thumbnail: Data?
  /// Peaks from 0 to 255; voice only.
  public let waveform: [Int]?
  /// Voice and video only.
  public let durationMs: Int?
  /// Pixels across, where the sender said so.
  public let width: Int?
  /// Pixels down, where the sender said so.
  public let height: Int?

  /// Where the bytes come from; nil for an attachment that the app made.
  let origin: Origin?

  struct Origin: Sendable {
    let descriptor: AttachmentDescriptor
    let message: ClientMessageID
    let chat: ChatID
    let source: AttachmentSource
  }

  /// For previews and tests of apps: it has no bytes, and fetching throws `blob_not_found`.
  public init(
    filename: String, mimeType: String, kind: AttachmentKind, plaintextSize: Int, thumbnail: Data? = nil,
    waveform: [Int]? = nil, durationMs: Int? = nil, width: Int? = nil, height: Int? = nil
  ) {
    self.filename = filename
    self.mimeType = mimeType
    self.kind = kind
    self.plaintextSize = plaintextSize
    self.thumbnail = thumbnail
    self.waveform = waveform
    self.durationMs = durationMs
    self.width = width
    self.height = height
    origin = nil
  }

  init(
    _ descriptor: AttachmentDescriptor, of message: ClientMessageID, in chat: ChatID,
    from source: AttachmentSource
  ) {
    filename = descriptor.filename
    mimeType = descriptor.mimeType
    kind = AttachmentKind(descriptor.kind)
    plaintextSize = Int(descriptor.plainByteCount)
    let isPicture = kind == .image || kind == .video
    thumbnail = isPicture ? descriptor.thumbnail.map { Data($0) } : nil
    waveform = kind == .voice ? descriptor.waveform?.map { Int($0) } : nil
    durationMs = kind == .voice || kind == .video ? descriptor.durationMs.map { Int($0) } : nil
    width = descriptor.width.map { Int($0) }
    height = descriptor.height.map { Int($0) }
    origin = Origin(descriptor: descriptor, message: message, chat: chat, source: source)
  }

  /// Fetches the file, checks it and decrypts it (S0-58). All of it is in memory then; `fetchBlobStream` is for large ones.
  ///
  /// Throws `BackendError.integrity` when the bytes are not those that were sent, `blob_expired` and `blob_not_found` when
  /// the server has them no longer, and errors of the connection.
  /// - Parameter progress: called from any thread with the part that is fetched, 0 to 1.
  public func fetchBlob(progress: (@Sendable (Double) -> Void)? = nil) async throws -> Data {
    var data = Data()
    // A sender's word on the size is held against the ciphertext's before a byte comes; room is made as bytes come.
    for try await piece in fetchBlobStream(progress: progress) { data.append(piece) }
    return data
  }

  /// Fetches the file, checks it, then decrypts it piece by piece, in order and in bounded memory (S0-59, 2.10): the first
  /// piece comes when the hash of all is right. It throws as `fetchBlob()` does. Who stops reading stops the download.
  /// - Parameter progress: called from any thread with the part that is fetched, 0 to 1.
  public func fetchBlobStream(
    progress: (@Sendable (Double) -> Void)? = nil
  ) -> AsyncThrowingStream<Data, any Error> {
    guard let origin else {
      return AsyncThrowingStream { $0.finish(throwing: BackendError.client(.blobNotFound)) }
    }
    let pieces = AttachmentPieces(origin, progress)
    return AsyncThrowingStream { try await pieces.next() }
  }
}

/// Opens downloads, of whichever shell is open.
struct AttachmentSource: Sendable {
  var open:
    @Sendable (
      Attachment.Origin, _ progress: @escaping @Sendable (Int64, Int64) -> Void
    ) async throws -> AsyncThrowingStream<[UInt8], any Error>
}

/// A download that is pulled: nothing is read before somebody wants it.
private actor AttachmentPieces {
  private let origin: Attachment.Origin
  private let progress: (@Sendable (Double) -> Void)?
  private var iterator: AsyncThrowingStream<[UInt8], any Error>.Iterator?

  init(_ origin: Attachment.Origin, _ progress: (@Sendable (Double) -> Void)?) {
    (self.origin, self.progress) = (origin, progress)
  }

  func next() async throws -> Data? {
    if iterator == nil {
      let progress = progress
      let stream = try await origin.source.open(origin) { done, total in
        progress?(total > 0 ? min(1, Double(done) / Double(total)) : 0)
      }
      iterator = stream.makeAsyncIterator()
    }
    guard var iterator else { return nil }
    let piece = try await iterator.next(isolation: self)
    self.iterator = iterator
    return piece.map { Data($0) }
  }
}
