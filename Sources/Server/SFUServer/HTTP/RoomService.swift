import PalbeEventLoop
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeWebServer
import Synchronization

/// LiveKit's RoomService over Twirp: what an operator's server asks of rooms (livekit-protocol.md §2).
///
/// ## Overview
///
/// The web server's thread checks who asks and reads the request. The worker that has the room carries it
/// out and answers on its own thread; `ListRooms` asks every worker. A call that no worker answers in time
/// fails with `deadline_exceeded`. So that a stuck worker's inbox stays bounded, only so many calls wait.
final class RoomService: Sendable {
  /// Calls that wait for a worker.
  static let waitingLimit = 512

  private let access: LiveAccess
  private let inboxes: [WorkerInbox]
  private let rooms: LiveRooms
  private let waitingCount = Atomic<Int>(0)

  init(access: LiveAccess, inboxes: [WorkerInbox], rooms: LiveRooms) {
    self.access = access
    self.inboxes = inboxes
    self.rooms = rooms
  }

  /// Whether a path is one of a Twirp service.
  static func serves(_ path: String) -> Bool { path.hasPrefix("/twirp/") }

  /// A call whose head has passed.
  private struct Call {
    var method: LiveKit.RoomServiceMethod
    var encoding: LiveKit.TwirpEncoding
    var grant: AccessToken.VideoGrant
  }

  /// The refusal of a call, as far as its head tells; the body of one that is refused is not read.
  func refuseBody(of request: HTTPRequest) -> HTTPResponse? {
    do throws(LiveKit.TwirpError) {
      _ = try call(request)
      return nil
    } catch {
      return Self.response(error)
    }
  }

  /// - Parameter acceptsRooms: false when no room is to be made any more.
  func respond(to request: HTTPRequest, with responder: HTTPResponder, acceptsRooms: Bool) {
    responder.late = Self.response(.init(.deadlineExceeded, "the worker did not answer in time"))
    do throws(LiveKit.TwirpError) {
      let call = try call(request)
      let content = try LiveKit.RoomServiceRequest(call.method, body: request.body, encoding: call.encoding)
      guard call.grant.allows(content, of: call.method) else { throw Self.denied }
      if case .createRoom = content, !acceptsRooms {
        throw .init(.unavailable, "the server is shutting down")
      }
      if case .moveParticipant(let request) = content { try check(request, acceptsRooms: acceptsRooms) }
      guard let command = RoomCommand(content) else {
        throw .init(.unimplemented, "\(call.method.rawValue) is not supported by this server")
      }
      try ask(command, room: content.room) { answer in
        responder.send(Self.response(answer, to: call.method, as: call.encoding))
      }
    } catch {
      responder.send(Self.response(error))
    }
  }

  /// Who is moved must be let in there.
  private func check(_ request: LiveKit.MoveParticipantRequest, acceptsRooms: Bool) throws(LiveKit.TwirpError)
  {
    guard request.destinationRoom != request.room else {
      throw .init(.invalidArgument, "the participant is in that room")
    }
    guard rooms.contains(request.destinationRoom) || access.createsRooms && acceptsRooms else {
      throw .init(.notFound, "destination room does not exist")
    }
  }

  private static let denied = LiveKit.TwirpError(.unauthenticated, "permissions denied")

  private func call(_ request: HTTPRequest) throws(LiveKit.TwirpError) -> Call {
    guard let method = LiveKit.RoomServiceMethod(path: request.path) else {
      throw .init(.badRoute, "no handler for path \(request.path.prefix(256))")
    }
    guard request.method == "POST" else {
      throw .init(.badRoute, "unsupported method \(request.method) (only POST is allowed)")
    }
    let type = request.header("content-type") ?? ""
    guard let encoding = LiveKit.TwirpEncoding(contentType: type) else {
      throw .init(.badRoute, "unexpected Content-Type: \(type.prefix(256))")
    }
    let token: AccessToken
    do throws(JoinRefusal) {
      token = try AccessToken(of: request, keys: access.keys, now: WallClock.unixSeconds)
    } catch {
      throw .init(.unauthenticated, error.reason)
    }
    guard token.video.allows(method) else { throw Self.denied }
    return Call(method: method, encoding: encoding, grant: token.video)
  }

  // MARK: Workers

  /// - Parameter room: whose worker is asked; nil asks all.
  private func ask(
    _ command: RoomCommand, room: String?, _ reply: @escaping @Sendable (RoomAnswer) -> Void
  ) throws(LiveKit.TwirpError) {
    let asked: ArraySlice<WorkerInbox>
    if let room {
      asked = inboxes[RoomPlacement.worker(of: room, among: inboxes.count)...].prefix(1)
    } else {
      asked = inboxes[...]
    }
    guard waitingCount.wrappingAdd(1, ordering: .relaxed).newValue <= Self.waitingLimit else {
      waitingCount.wrappingSubtract(1, ordering: .relaxed)
      throw .init(.unavailable, "the server is overloaded")
    }
    let collector = RoomAnswerCollector(
      count: asked.count, whole: reply,
      end: { [self] in waitingCount.wrappingSubtract(1, ordering: .relaxed) })
    for inbox in asked { inbox.post(.command(command) { collector.add($0) }) }
  }

  // MARK: Answers

  private static func response(_ error: LiveKit.TwirpError) -> HTTPResponse {
    HTTPResponse(
      status: error.code.httpStatus, headers: [.init("content-type", LiveKit.TwirpError.contentType)],
      body: Array(error.json.utf8))
  }

  private static func response(
    _ answer: RoomAnswer, to method: LiveKit.RoomServiceMethod, as encoding: LiveKit.TwirpEncoding
  ) -> HTTPResponse {
    let body: [UInt8]
    switch (method, answer) {
    case (_, .refused(let refusal)): return response(.init(refusal))
    case (.createRoom, .room(let room)), (.updateRoomMetadata, .room(let room)):
      body = encoding.encode(room)
    case (.listRooms, .rooms(let rooms)):
      body = encoding.encode(LiveKit.ListRoomsResponse.with { $0.rooms = rooms })
    case (.deleteRoom, .done): body = encoding.encode(LiveKit.DeleteRoomResponse())
    case (.listParticipants, .participants(let participants)):
      body = encoding.encode(LiveKit.ListParticipantsResponse.with { $0.participants = participants })
    case (.getParticipant, .participant(let participant)),
      (.updateParticipant, .participant(let participant)):
      body = encoding.encode(participant)
    case (.removeParticipant, .done): body = encoding.encode(LiveKit.RemoveParticipantResponse())
    case (.mutePublishedTrack, .track(let track)):
      body = encoding.encode(LiveKit.MuteRoomTrackResponse.with { $0.track = track })
    case (.updateSubscriptions, .done): body = encoding.encode(LiveKit.UpdateSubscriptionsResponse())
    case (.sendData, .done): body = encoding.encode(LiveKit.SendDataResponse())
    case (.moveParticipant, .done): body = encoding.encode(LiveKit.MoveParticipantResponse())
    case (.performRpc, .payload(let payload)):
      body = encoding.encode(LiveKit.PerformRpcResponse.with { $0.payload = payload })
    default: return response(.init(.internal, "the worker gave an answer to another question"))
    }
    return HTTPResponse(
      status: 200, headers: [.init("content-type", encoding.contentType)], body: body)
  }
}

/// Joins the answers of several workers to one. When a worker ends without an answer, there is none.
private final class RoomAnswerCollector: Sendable {
  private struct State {
    var missing: Int
    var rooms: [LiveKit.Room] = []
  }
  private let state: Mutex<State>
  private let isAlone: Bool
  private let whole: @Sendable (RoomAnswer) -> Void
  private let end: @Sendable () -> Void

  /// - Parameter end: called once, when every worker has answered or none will any more.
  init(count: Int, whole: @escaping @Sendable (RoomAnswer) -> Void, end: @escaping @Sendable () -> Void) {
    state = Mutex(State(missing: count))
    isAlone = count == 1
    self.whole = whole
    self.end = end
  }

  deinit { end() }

  func add(_ answer: RoomAnswer) {
    guard !isAlone else { return whole(answer) }
    let rooms: [LiveKit.Room]? = state.withLock { state in
      if case .rooms(let rooms) = answer { state.rooms += rooms }
      state.missing -= 1
      return state.missing == 0 ? state.rooms.sorted { $0.name < $1.name } : nil
    }
    if let rooms { whole(.rooms(rooms)) }
  }
}

extension LiveKit.TwirpError {
  /// What a worker's refusal is to the caller.
  init(_ refusal: RoomRefusal) {
    let code: Code =
      switch refusal {
      case .noSuchRoom, .noSuchParticipant, .noSuchTrack: .notFound
      case .tooManyRooms: .resourceExhausted
      case .draining: .unavailable
      case .tooLong: .invalidArgument
      case .mayNotUnmute, .notReachable, .callFailed: .failedPrecondition
      case .tooManyCalls: .resourceExhausted
      case .noAnswer: .deadlineExceeded
      }
    self.init(code, refusal.description)
    if case .callFailed(let code, _, let data) = refusal {
      // The numbers of LiveKit's clients: 1400 no such method, 1500 the method failed, and so on.
      meta = ["rpc_code": "\(code)"]
      if !data.isEmpty { meta["rpc_data"] = data }
    }
  }
}

extension RoomCommand {
  /// What the core is to do for a call; nil when it cannot do it.
  ///
  /// As LiveKit has it, zero and the empty text leave a setting as it is.
  init?(_ request: LiveKit.RoomServiceRequest) {
    switch request {
    case .createRoom(let request): self = .create(RoomSettings(request))
    case .listRooms(let request): self = .list(names: request.names)
    case .deleteRoom(let request): self = .delete(room: request.room)
    case .listParticipants(let request): self = .listParticipants(room: request.room)
    case .getParticipant(let request): self = .participant(room: request.room, identity: request.identity)
    case .removeParticipant(let request): self = .remove(room: request.room, identity: request.identity)
    case .mutePublishedTrack(let request):
      self = .mute(
        room: request.room, identity: request.identity, track: request.trackSid, isMuted: request.muted)
    case .updateParticipant(let request):
      self = .update(room: request.room, identity: request.identity, ParticipantChange(request))
    case .updateSubscriptions(let request):
      self = .subscribe(
        room: request.room, identity: request.identity,
        tracks: request.trackSids + request.participantTracks.flatMap(\.trackSids),
        isSubscribed: request.subscribe)
    case .updateRoomMetadata(let request):
      self = .setMetadata(room: request.room, metadata: request.metadata)
    case .sendData(let request): self = .sendData(request)
    case .moveParticipant(let request):
      self = .move(room: request.room, identity: request.identity, destination: request.destinationRoom)
    case .performRpc(let request): self = .call(request)
    // A worker has no transports in another one's room, and each of its own would need a second subscription there.
    case .forwardParticipant: return nil
    }
  }
}

extension RoomSettings {
  init(_ request: LiveKit.CreateRoomRequest) {
    self.init(
      name: request.name, emptyTimeout: request.emptyTimeout, departureTimeout: request.departureTimeout,
      maxParticipants: request.maxParticipants, metadata: request.metadata, tags: request.tags)
  }
}

extension ParticipantChange {
  init(_ request: LiveKit.UpdateParticipantRequest) {
    self.init()
    name = request.name.isEmpty ? nil : request.name
    metadata = request.metadata.isEmpty ? nil : request.metadata
    attributes = request.attributes
    permission = request.permission
  }
}
