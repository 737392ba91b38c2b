import Foundation
import Palbase
package import PalbeChatCore
package import PalbeUnits
import PalbeWire
import Synchronization

/// A file that is being brought up.
struct UploadJob: Sendable {
  let chat: ChatID
  let message: ClientMessageID
  let group: GroupID
  let spool: String
  let body: AttachmentBody
}

/// Files: sealed into the spool, shown, brought up, named in a message (S0-40 to S0-46, S3-13, S3-18).
extension MessagingShell {
  /// Sends a file; returns when the server has it and its message.
  package func sendFile(
    _ file: OutgoingFile, to chat: ChatID, replyingTo: ClientMessageID? = nil, expiry: Expiry? = nil
  ) async throws -> SettledMessage {
    let (body, spool) = try await spooled(file)
    return try await settle { (shell, box) throws in
      try shell.sendFile(body, spool, chat, replyingTo, expiry, box)
    }
  }

  /// Sends a file without waiting for the server; returns when its bytes are sealed here and its row is durable.
  package func enqueueFile(
    _ file: OutgoingFile, to chat: ChatID, replyingTo: ClientMessageID? = nil, expiry: Expiry? = nil
  ) async throws -> ClientMessageID {
    let (body, spool) = try await spooled(file)
    return try await perform(isShown: true) { (shell, box) throws in
      try shell.sendFile(body, spool, chat, replyingTo, expiry, box)
    }
  }

  private func spooled(_ file: OutgoingFile) async throws -> (AttachmentBody, String) {
    guard phase == .open else { throw endError }
    let name = await spool.makeName()
    let sealed = try await spool.take(file.source, as: name, at: now().wall)
    var descriptor = sealed.descriptor(kind: file.kind, filename: file.filename, mimeType: file.mimeType)
    descriptor.thumbnail = file.thumbnail
    descriptor.waveform = file.waveform
    descriptor.durationMs = file.durationMs
    descriptor.width = file.width
    descriptor.height = file.height
    return (AttachmentBody(descriptor, caption: file.caption), name)
  }

  private func sendFile(
    _ body: AttachmentBody, _ name: String, _ chat: ChatID, _ reply: ClientMessageID?, _ expiry: Expiry?,
    _ box: EngineBox
  ) throws -> ClientMessageID {
    do {
      return try engine { (now) throws(EngineError) in
        var body = body
        if case .attachment(let answering) = try Content.attachment(body).replying(
          to: reply, in: chat, box, at: now)
        {
          body = answering
        }
        let expiry = try Content.attachment(body).expiry(expiry, in: chat, box, at: now)
        return try box.engine.sendFile(body, to: chat, expiry: expiry, spool: name, at: now)
      }
    } catch {
      spool.remove(name)
      throw error
    }
  }

  // MARK: Up

  /// The engine wants the bytes at the server now.
  func upload(_ message: ClientMessageID, in chat: ChatID, to group: GroupID, _ box: EngineBox) {
    guard let pending = box.engine.pendingUploads(in: chat).first(where: { $0.message == message }) else {
      return
    }
    uploads.removeValue(forKey: message)?.cancel()
    waitingUploads.removeAll { $0.message == message }
    waitingUploads.append(
      UploadJob(chat: chat, message: message, group: group, spool: pending.spool, body: pending.body))
    startUploads()
  }

  private func startUploads() {
    while uploads.count < settings.uploadLimit, !waitingUploads.isEmpty {
      let job = waitingUploads.removeFirst()
      let told: BlobTransfer.Progress = { [weak self] done, total in
        guard let self else { return }
        Task { await self.uploaded(job, done, total) }
      }
      uploads[job.message] = Task { [weak self, runtime, spool, user] in
        let upload = FileUpload(job: job, runtime: runtime, spool: spool, user: user, progress: told)
        let result = await upload.run()
        guard !Task.isCancelled else { return }
        await self?.uploadEnded(job, result)
      }
    }
  }

  private func uploaded(_ job: UploadJob, _ done: Int64, _ total: Int64) {
    guard uploads[job.message] != nil else { return }
    if case .upload(job.chat, job.message, _, _)? = pending.last { pending.removeLast() }
    pending.append(.upload(job.chat, job.message, done: done, total: total))
    deliverSoon()
  }

  private func uploadEnded(_ job: UploadJob, _ result: Result<AttachmentDescriptor, BackendError>) {
    guard uploads.removeValue(forKey: job.message) != nil else { return }
    startUploads()
    post(
      .call(
        ShellCall(
          run: { shell in
            guard let box = shell.box else { return nil }
            // One that is over meanwhile waits for nothing any more.
            switch result {
            case .success(let descriptor):
              try? shell.engine { (now) throws(EngineError) in
                try box.engine.release(
                  job.message, in: job.chat, of: job.group, descriptor: descriptor, at: now)
              }
            case .failure(let error):
              try? shell.engine { (now) throws(EngineError) in
                try box.engine.failUpload(job.message, in: job.chat, code: error.code.rawValue, at: now)
              }
            }
            return nil
          }, refuse: { _ in })))
  }

  func stopUpload(_ message: ClientMessageID, in chat: ChatID) {
    waitingUploads.removeAll { $0.message == message }
    guard let task = uploads.removeValue(forKey: message) else { return }
    task.cancel()
    startUploads()
  }

  func uploadOver(_ message: ClientMessageID, in chat: ChatID, spool name: String) {
    stopUpload(message, in: chat)
    spool.remove(name)
    spool.remove(name + FileUpload.suffix)
  }

  // MARK: Down

  /// A file's bytes, in pieces of at most a MiB, as they are asked for: its ciphertext is fetched and its hash checked
  /// before the first (S0-46). A file of ours that waits comes from this device.
  /// - Parameter progress: bytes fetched and bytes in all; called from any thread.
  package nonisolated func download(
    _ descriptor: AttachmentDescriptor, of message: ClientMessageID? = nil, in chat: ChatID? = nil,
    progress: @escaping @Sendable (Int64, Int64) -> Void = { _, _ in }
  ) -> AsyncThrowingStream<[UInt8], any Error> {
    let reader = Mutex<SpoolReader?>(nil)
    let opened = OpenedFile(reader)
    return AsyncThrowingStream { [weak self, spool] in
      if let reader = opened.value { return try await spool.next(reader) }
      guard let self else { throw BackendError.storeUnavailable(.system(-1)) }
      let reader = try await opening(descriptor, message, chat, progress)
      opened.value = reader
      return try await spool.next(reader)
    }
  }

  private nonisolated func opening(
    _ descriptor: AttachmentDescriptor, _ message: ClientMessageID?, _ chat: ChatID?,
    _ progress: @escaping @Sendable (Int64, Int64) -> Void
  ) async throws -> SpoolReader {
    if let message, let chat {
      let pending = try await perform { (_, box) throws in
        box.engine.pendingUploads(in: chat).first { $0.message == message && $0.standing != .released }
      }
      if let pending { return try await spool.open(pending.spool, pending.body.descriptor, removing: false) }
    }
    let fetch = FileFetch(
      descriptor: descriptor, runtime: runtime, spool: spool, user: user, progress: progress)
    return try await fetch.run()
  }
}

/// Holds what a stream has open; goes with it.
private final class OpenedFile: Sendable {
  private let reader: Mutex<SpoolReader?>
  init(_ reader: consuming Mutex<SpoolReader?>) { self.reader = reader }
  var value: SpoolReader? {
    get { reader.withLock { $0 } }
    set { reader.withLock { $0 = newValue } }
  }
}

/// Where the server has or wants a blob.
struct BlobPlace: Equatable, Sendable {
  var blob: BlobID
  var isReady: Bool
  var address: String?

  /// Nil for anything that is none.
  init?(_ bytes: [UInt8]) {
    guard
      let place = WireAnswers.read(
        bytes,
        { (json) throws(JSONError) in
          var (blob, state, put, get): (BlobID?, String?, String?, String?)
          try WireAnswers.object(&json) { (key, json) throws(JSONError) in
            switch key {
            case "blob_id": blob = try WireAnswers.id(&json)
            case "state": state = try json.string()
            case "put_url": put = try json.string()
            case "get_url": get = try json.string()
            default: try json.skipValue()
            }
          }
          let isReady = try WireAnswers.need(state) == "ready"
          return BlobPlace(blob: try WireAnswers.need(blob), isReady: isReady, address: isReady ? get : put)
        })
    else { return nil }
    self = place
  }

  private init(blob: BlobID, isReady: Bool, address: String?) {
    (self.blob, self.isReady, self.address) = (blob, isReady, address)
  }

  static func ask(_ call: BackendCall, _ runtime: PalbaseRuntime, _ user: UserID) async throws -> BlobPlace {
    var call = call
    call.userId = user.text
    let answer = try await runtime.client.send(call)
    guard let place = BlobPlace(answer.body) else {
      throw BackendError.unexpectedAnswer(requestId: answer.headers["request-id"])
    }
    return place
  }

  static func of(_ blob: BlobID, _ runtime: PalbaseRuntime, _ user: UserID) async throws -> BlobPlace {
    try await ask(BackendCall("GET", "/v1/blobs/\(blob.text)", access: .device), runtime, user)
  }
}

/// Brings one file up: announced, sealed for its blob, sent with resume, completed. Goes on until the server has it or
/// refuses it.
struct FileUpload: Sendable {
  /// Behind the name of what waits: what is sent.
  static let suffix = ".up"
  let job: UploadJob
  let runtime: PalbaseRuntime
  let spool: SpoolWorker
  let user: UserID
  let progress: BlobTransfer.Progress

  func run() async -> Result<AttachmentDescriptor, BackendError> {
    let time = runtime.time
    var wait = TimeDelta.seconds(1)
    var sent: (sealed: SealedAttachment, place: BlobPlace)?
    while true {
      do {
        return .success(try await attempt(&sent))
      } catch let error as BackendError {
        switch error.code {
        case .blobNotFound, .blobExpired: if sent == nil { return .failure(error) }
        case .unreachable, .unavailable, .requestTimeout, .rateLimited, .uploadIncomplete, .notSignedIn,
          .sessionExpired, .deviceNotEnrolled:
          break
        default: return .failure(error)
        }
        if error.code == .blobNotFound || error.code == .blobExpired { sent = nil }
      } catch { return .failure(.unreachable(.connectionLost)) }
      do { try await time.sleep(time.jittered(wait)) } catch {
        return .failure(.unreachable(.connectionLost))
      }
      wait = min(wait * 2, .seconds(60))
    }
  }

  private func attempt(
    _ sent: inout (sealed: SealedAttachment, place: BlobPlace)?
  ) async throws -> AttachmentDescriptor {
    let name = job.spool + Self.suffix
    let isContinued = sent != nil
    if sent == nil {
      let layout = AttachmentLayout(plainByteCount: job.body.descriptor.plainByteCount)
      guard let layout else { throw BackendError.client(.attachmentTooLarge) }
      var call = BackendCall("POST", "/v1/groups/\(job.group.text)/blobs", access: .device)
      call.body = Array("{\"size\":\(layout.cipherByteCount)}".utf8)
      call.idempotencyKey = UUID().uuidString.lowercased()
      let place = try await BlobPlace.ask(call, runtime, user)
      sent = (try await spool.seal(job.spool, job.body.descriptor, for: place.blob, to: name), place)
    }
    guard let (sealed, place) = sent else { throw BackendError.integrity }
    let (runtime, user) = (runtime, user)
    try await BlobTransfer(runtime.client.http).upload(
      .file(path: spool.path(name)), byteCount: sealed.layout.cipherByteCount,
      to: { isOver in
        let now = isOver || isContinued ? try await BlobPlace.of(place.blob, runtime, user) : place
        guard let address = now.address else { throw BackendError.unexpectedAnswer(requestId: nil) }
        return address
      }, isContinued: isContinued, progress: progress)
    var call = BackendCall("POST", "/v1/blobs/\(place.blob.text)/complete", access: .device)
    call.isHarmlessTwice = true
    _ = try await BlobPlace.ask(call, runtime, user)
    spool.remove(name)
    var descriptor = job.body.descriptor
    descriptor.blob = sealed.blob
    descriptor.key = sealed.key
    descriptor.cipherHash = sealed.cipherHash
    descriptor.cipherByteCount = sealed.layout.cipherByteCount
    return descriptor
  }
}

/// Fetches one file's ciphertext into the spool and opens it when its hash is right; one that is not is fetched once more.
struct FileFetch: Sendable {
  let descriptor: AttachmentDescriptor
  let runtime: PalbaseRuntime
  let spool: SpoolWorker
  let user: UserID
  let progress: BlobTransfer.Progress

  func run() async throws -> SpoolReader {
    let name = await spool.makeName() + ".down"
    do {
      do { return try await attempt(name) } catch BackendError.integrity {
        spool.remove(name)
        return try await attempt(name)
      }
    } catch {
      spool.remove(name)
      throw error
    }
  }

  private func attempt(_ name: String) async throws -> SpoolReader {
    let (blob, runtime, user) = (descriptor.blob, runtime, user)
    try await BlobTransfer(runtime.client.http).download(
      to: spool.path(name), byteCount: descriptor.cipherByteCount, tag: blob.text,
      from: { _ in
        let place = try await BlobPlace.of(blob, runtime, user)
        guard place.isReady, let address = place.address else { throw BackendError.client(.blobNotFound) }
        return address
      }, progress: progress)
    return try await spool.open(name, descriptor, removing: true)
  }
}
