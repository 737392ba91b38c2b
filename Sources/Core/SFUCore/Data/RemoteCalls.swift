import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits
import PalbeWire

/// Calls of operators to participants that wait for an answer (livekit-protocol 2, PerformRpc), each until its time is over.
struct RemoteCalls {
  struct Call {
    let command: CommandID
    /// Who is called; nobody else can answer.
    let participant: String
    let deadline: Instant
  }

  /// Who calls. Clients refuse a call of nobody.
  static let caller = "server"
  /// Calls at once; the shell has its own bound.
  static let limit = 1_024
  static let usualTime = TimeDelta.seconds(10)
  /// The shell answers for us a second later.
  static let longestTime = TimeDelta.seconds(14)

  private var waiting: [String: Call] = [:]

  var isFull: Bool { waiting.count >= Self.limit }

  mutating func insert(_ id: String, _ call: Call) { waiting[id] = call }

  /// The call with this number, when the participant was called.
  func contains(_ id: String, of participant: String) -> Bool { waiting[id]?.participant == participant }

  mutating func end(_ id: String) -> CommandID? { waiting.removeValue(forKey: id)?.command }

  /// Takes out those that `isOver`, in one order, so that a run replays.
  mutating func takeOut(where isOver: (Call) -> Bool) -> [CommandID] {
    let over = waiting.filter { isOver($0.value) }
    for id in over.keys { waiting[id] = nil }
    return over.values.map(\.command).sorted { $0.rawValue < $1.rawValue }
  }

  var nextDeadline: Instant? { waiting.values.lazy.map(\.deadline).min() }
}

extension SignalPlane {
  /// Calls a method of a participant's; the answer follows when it has answered, has left, or its time is over.
  func call(_ request: LiveKit.PerformRpcRequest, as command: CommandID, at now: Instant) throws(RoomRefusal)
  {
    let participant = try participant(request.room, request.destinationIdentity)
    guard request.payload.utf8.count <= DataLink.offeredMessageSize - 2_048 else {
      throw .tooLong(field: "payload")
    }
    guard !context.calls.isFull else { throw .tooManyCalls }
    let asked = TimeDelta.milliseconds(Int(request.responseTimeoutMs))
    let time = asked == .zero ? RemoteCalls.usualTime : min(asked, RemoteCalls.longestTime)
    // Nobody who is not called can guess it.
    let id = Hex.encode(context.random.bytes(16))
    let deadline = now + time
    context.calls.insert(id, .init(command: command, participant: participant.sid, deadline: deadline))
    context.wake(at: deadline)
    let packet = LiveKit.DataPacket.with {
      $0.kind = .reliable
      $0.participantIdentity = RemoteCalls.caller
      $0.destinationIdentities = [participant.identity]
      $0.value = .rpcRequest(
        .with {
          $0.id = id
          $0.method = request.method
          $0.payload = request.payload
          $0.responseTimeoutMs = UInt32(time.wholeMilliseconds)
          $0.version = 1
        })
    }
    participant.sendData(packet.serialized(), .reliable)
  }

  /// True for what a participant says about a call of ours: it is nobody else's.
  func takeAnswer(_ packet: LiveKit.DataPacket, of participant: Participant) -> Bool {
    switch packet.value {
    case .rpcAck(let ack): return context.calls.contains(ack.requestId, of: participant.sid)
    case .rpcResponse(let response):
      guard context.calls.contains(response.requestId, of: participant.sid),
        let command = context.calls.end(response.requestId)
      else { return false }
      switch response.value {
      case .payload(let payload): context.events.append(.answer(command, .payload(payload)))
      case .error(let error):
        context.events.append(
          .answer(command, .refused(.callFailed(code: error.code, message: error.message, data: error.data))))
      // We asked in the version that compresses nothing.
      case .compressedPayload, nil: context.events.append(.answer(command, .refused(.noAnswer)))
      }
      return true
    default: return false
    }
  }

  /// Ends calls whose time is over, and says when the next one's is.
  func expireCalls(at now: Instant) {
    refuse(context.calls.takeOut { $0.deadline <= now }, .noAnswer)
    if let next = context.calls.nextDeadline { context.wake(at: next) }
  }

  /// Who was called has left.
  func endCalls(to participant: Participant) {
    refuse(context.calls.takeOut { $0.participant == participant.sid }, .noSuchParticipant)
  }

  private func refuse(_ commands: [CommandID], _ reason: RoomRefusal) {
    for command in commands { context.events.append(.answer(command, .refused(reason))) }
  }
}
