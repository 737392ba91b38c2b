/// What everybody on the way can read of a message, before anything is verified.
extension MLSMessage {
  /// The group it is for; nil for a Welcome, which does not tell, and a key package.
  public var groupID: [UInt8]? {
    switch self {
    case .publicMessage(let message): message.content.groupID
    case .privateMessage(let message): message.groupID
    case .groupInfo(let groupInfo): groupInfo.context.groupID
    case .welcome, .keyPackage: nil
    }
  }

  /// The epoch it was sent in; nil for a Welcome and a key package.
  public var epoch: UInt64? {
    switch self {
    case .publicMessage(let message): message.content.epoch
    case .privateMessage(let message): message.epoch
    case .groupInfo(let groupInfo): groupInfo.context.epoch
    case .welcome, .keyPackage: nil
    }
  }

  /// What it carries; nil for what is no message to a group.
  public var contentType: ContentType? {
    switch self {
    case .publicMessage(let message): message.content.content.type
    case .privateMessage(let message): message.contentType
    case .welcome, .groupInfo, .keyPackage: nil
    }
  }

  /// What the sender passed as `authenticatedData`: genuine once the message was processed. Nil for what is no message
  /// to a group.
  public var authenticatedData: [UInt8]? {
    switch self {
    case .publicMessage(let message): message.content.authenticatedData
    case .privateMessage(let message): message.authenticatedData
    case .welcome, .groupInfo, .keyPackage: nil
    }
  }
}
