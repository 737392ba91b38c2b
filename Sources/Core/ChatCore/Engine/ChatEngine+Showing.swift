import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// What whoever shows chats reads; nothing here changes anything or asks the server.
extension ChatEngine {
  /// Rows of a chat, the oldest first: at most `limit` confirmed ones before a place, and behind the newest all that is
  /// pending (S0-48, S0-51).
  /// - Parameter isMedia: only those with a file.
  package mutating func page(
    of id: ChatID, before end: TranscriptPosition? = nil, limit: Int, isMedia: Bool = false, at now: ChatTime
  ) throws(EngineError) -> TranscriptPage {
    try read(id, at: now) { (transcript) throws(MLSStorageError) in
      try transcript.page(before: end, limit: limit, isMedia: isMedia)
    }
  }

  /// One row; nil when it is not here, or no longer.
  package mutating func row(
    _ message: ClientMessageID, in id: ChatID, at now: ChatTime
  ) throws(EngineError) -> Row? {
    try read(id, at: now) { (transcript) throws(MLSStorageError) in try transcript.row(message) }
  }

  /// A chat as the list shows it, as it is now.
  package mutating func summary(of id: ChatID, at now: ChatTime) throws(EngineError) -> ChatSummary {
    try read(id, at: now) { (transcript) in transcript.summary }
  }

  /// How far a user has read, by whatever device; 0 for nothing known (S0-97). Of oneself what `markRead` says.
  package mutating func readWatermark(
    of user: UserID, in id: ChatID, at now: ChatTime
  ) throws(EngineError) -> Int64 {
    let me = me
    return try read(id, at: now) { (transcript) throws(MLSStorageError) in
      user == me ? transcript.summary.readSeq : try transcript.watermarks(of: user).read
    }
  }

  /// The other users who have read up to this number, by their ids (S0-97).
  package mutating func readers(
    upTo seq: Int64, in id: ChatID, at now: ChatTime
  ) throws(EngineError) -> [UserID] {
    try read(id, at: now) { (transcript) throws(MLSStorageError) in try transcript.readers(upTo: seq) }
  }

  /// Whose devices said that the timer that holds now holds there (S0-86).
  package mutating func disappearingAckedBy(
    _ id: ChatID, at now: ChatTime
  ) throws(EngineError) -> [UserID] {
    try read(id, at: now) { (transcript) throws(MLSStorageError) in try transcript.timerAcknowledgedBy() }
  }

  /// The devices of a user in a chat's authenticated tree, ascending: what a safety number covers (S0-107, S0-111). Nobody's
  /// for who is no member. Throws `chatIsDraft`, and `notAMember` for a chat that the user is out of.
  package mutating func devices(
    of user: UserID, in id: ChatID, at now: ChatTime
  ) throws(EngineError) -> [DeviceMaterial] {
    try perform(at: now) { (engine) throws(EngineError) in
      let chat = try engine.activeChat(id, orDiverged: true)
      do throws(MLSStorageError) {
        guard let group = try engine.group(of: chat) else { return [] }
        return group.stored.group.members.compactMap { member in
          guard let name = DeviceName(credential: member.credential), name.user == user else { return nil }
          return DeviceMaterial(device: name.device, signatureKey: member.signatureKey)
        }.sorted { $0.device < $1.device }
      } catch { throw .storage(error) }
    }
  }

  /// The members with their roles, by their ids; of a draft those to be. Who left and is not taken out yet is none any more.
  package func members(of id: ChatID) -> [(user: UserID, role: ChatRole)] {
    guard let head = chats[id]?.head else { return [] }
    return head.shape.users.filter { !head.departed.contains($0) }.map {
      ($0, head.shape.role(of: $0) ?? .member)
    }
  }

  /// Who typed last in a chat, by their ids.
  package func typing(in id: ChatID) -> [UserID] { chats[id]?.typing.users ?? [] }
  /// The other users of a chat who are there now, by their ids.
  package func online(in id: ChatID) -> [UserID] { chats[id]?.online.sorted() ?? [] }

  private mutating func read<Value>(
    _ id: ChatID, at now: ChatTime, _ body: (inout Transcript) throws(MLSStorageError) -> Value
  ) throws(EngineError) -> Value {
    try perform(at: now) { (engine) throws(EngineError) in
      guard let chat = engine.chats[id] else { throw .chatNotFound }
      do throws(MLSStorageError) {
        try engine.load(chat)
        guard chat.transcript != nil else { throw .inconsistent }
        // In place: what it learns of the rows' order stays.
        return try body(&chat.transcript!)
      } catch { throw .storage(error) }
    }
  }
}
