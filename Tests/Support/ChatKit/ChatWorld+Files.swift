import PalbeChatCore
import PalbeCrypto
import PalbeUnits

/// Files as a shell sends them: their bytes take a while to go up, and may not get there.
extension ChatWorld {
  /// How the bytes of one file go up.
  struct Upload {
    /// Milliseconds.
    var duration: Int
    /// How often they do not get there first.
    var failures: Int
  }

  /// Sends a file whose bytes take so many milliseconds, after so many attempts that fail.
  @discardableResult
  package func sendFile(
    _ caption: String?, from phone: Phone, to chat: ChatID, kind: AttachmentKind = .file,
    taking duration: Int = 100,
    failures: Int = 0
  ) throws(EngineError) -> ClientMessageID {
    let spool = "\(phone.name)/\(uploads.count)"
    uploads[spool] = Upload(duration: duration, failures: failures)
    // Written before the engine hears of it; what it does not know goes at the next start.
    phone.spools.insert(spool)
    let standIn = descriptor(kind)
    do throws(EngineError) {
      return try use(phone) { (engine, now) throws(EngineError) in
        let expiry = try engine.summary(of: chat, at: now).profile.timer
        return try engine.sendFile(
          AttachmentBody(standIn, caption: caption), to: chat, expiry: expiry, spool: spool, at: now)
      }
    } catch {
      if phone.isRunning { phone.spools.remove(spool) }
      throw error
    }
  }

  private func descriptor(_ kind: AttachmentKind) -> AttachmentDescriptor {
    AttachmentDescriptor(
      blob: BlobID(at: now.wall, using: &random),
      key: AttachmentKey(SymmetricKey(copying: random.bytes(32))),
      cipherHash: random.bytes(32), cipherByteCount: AttachmentLayout(plainByteCount: 100)!.cipherByteCount,
      plainByteCount: 100, kind: kind,
      filename: "a.bin", mimeType: "image/png")
  }

  func upload(_ message: ClientMessageID, in chat: ChatID, to group: GroupID, _ phone: Phone) {
    guard let pending = phone.engine?.pendingUploads(in: chat).first(where: { $0.message == message }) else {
      return ledger.complain("\(phone.name): an upload is wanted that is none")
    }
    let life = phone.life
    let plan = uploads[pending.spool] ?? Upload(duration: 100, failures: 0)
    schedule(after: plan.duration + latency()) { world in
      guard phone.life == life, phone.isRunning else { return }
      guard phone.isReachable else {
        // Goes on when there is a network again.
        return world.schedule(after: 500) { $0.upload(message, in: chat, to: group, phone, life) }
      }
      world.finish(message, in: chat, to: group, pending, phone)
    }
  }

  private func upload(
    _ message: ClientMessageID, in chat: ChatID, to group: GroupID, _ phone: Phone, _ life: Int
  ) {
    guard phone.life == life,
      phone.engine?.pendingUploads(in: chat).contains(where: { $0.message == message }) == true
    else { return }
    upload(message, in: chat, to: group, phone)
  }

  private func finish(
    _ message: ClientMessageID, in chat: ChatID, to group: GroupID, _ pending: PendingUpload, _ phone: Phone
  ) {
    if uploads[pending.spool]?.failures ?? 0 > 0 {
      uploads[pending.spool]?.failures -= 1
      _ = try? use(phone) { (engine, now) throws(EngineError) in
        try engine.failUpload(message, in: chat, code: "attachment_too_large", at: now)
      }
      return
    }
    let descriptor = descriptor(pending.body.descriptor.kind)
    _ = try? use(phone) { (engine, now) throws(EngineError) in
      try engine.release(message, in: chat, of: group, descriptor: descriptor, at: now)
    }
  }
}
