import PalbeLiveKit
import PalbeProtobuf

/// Small pieces of data that a participant leaves with the server for the others, such as the schemas of its data tracks.
/// They live as long as it does.
struct DataBlobs {
  /// Bytes of all of one participant's, keys and contents.
  static let byteLimit = 64_000

  private var kept: [LiveKit.DataBlob] = []

  subscript(key: LiveKit.DataBlobKey) -> LiveKit.DataBlob? { kept.first { $0.key == key } }

  /// Takes the place of one with the same key. False when there would be too much.
  mutating func store(_ blob: LiveKit.DataBlob) -> Bool {
    let others = kept.filter { $0.key != blob.key }
    guard others.reduce(blob.byteCount, { $0 + $1.byteCount }) <= Self.byteLimit else { return false }
    kept = others + [blob]
    return true
  }
}

extension LiveKit.DataBlob {
  fileprivate var byteCount: Int { (key?.name.utf8.count ?? 0) + contents.count }
}

extension LiveKit.DataBlobKey {
  fileprivate var name: String {
    switch key {
    case .generic(let name): name
    case .schemaId(let schema): schema.name
    case nil: ""
    }
  }

  fileprivate var isAcceptable: Bool {
    guard !name.isEmpty, TextLimits.accepts(name: name) else { return false }
    if case .schemaId(let schema) = key { return schema.isAcceptable }
    return true
  }
}

extension SignalPlane {
  func storeDataBlob(_ request: LiveKit.StoreDataBlobRequest, of participant: Participant) {
    func refuse(_ reason: LiveKit.RequestResponse.Reason, _ message: String) {
      participant.respond(reason, id: request.requestId, to: nil, message: message)
    }
    guard participant.grant.canPublishData else {
      return refuse(.notAllowed, "does not have permission to publish data")
    }
    guard let blob = request.blob, let key = blob.key, key.isAcceptable, !blob.contents.isEmpty else {
      return refuse(.invalidRequest, "a data blob has a key of 1 to 256 bytes and contents")
    }
    guard participant.dataBlobs.store(blob) else { return refuse(.limitExceeded, "too many data blobs") }
    participant.send(
      .storeDataBlobResponse(
        .with {
          $0.requestId = request.requestId
          $0.key = key
        }))
  }

  func getDataBlob(_ request: LiveKit.GetDataBlobRequest, of participant: Participant) {
    guard let key = request.key else {
      return participant.respond(
        .invalidRequest, id: request.requestId, to: nil, message: "a data blob's key is required")
    }
    let owner = participant.room.participant(identity: request.participantIdentity)
    guard let owner, owner === participant || !owner.grant.hidden, let blob = owner.dataBlobs[key] else {
      return participant.respond(
        .notFound, id: request.requestId, to: nil, message: "no such participant or data blob")
    }
    participant.send(
      .getDataBlobResponse(
        .with {
          $0.requestId = request.requestId
          $0.blob = blob
        }))
  }
}
