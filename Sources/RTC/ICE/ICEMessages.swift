import PalbeUnits
import PalbeWire

/// Why an agent did nothing with a datagram.
public enum ICEIgnoreReason: Error, Equatable, Sendable {
  /// Not a STUN message that can be read.
  case notSTUN(STUNError)
  /// Not about the method Binding.
  case otherMethod(UInt16)
  /// A Binding indication: keeps a mapping alive, asks for nothing.
  case indication
  /// A response to a request that is not under way (any more), or not with whom it is from.
  case unknownTransaction
  /// A request without USERNAME, or one for another user name fragment than ours.
  case otherAgent
  /// MESSAGE-INTEGRITY is missing or wrong.
  case unauthenticated
  /// A copy of a request that came before from somewhere else.
  case replayed
  /// The socket's index was never given to the agent.
  case unknownBase
}

extension STUNMessage {
  /// The part of USERNAME before the colon: in a request to us, our own fragment (RFC 8445 §7.2.2).
  var receiverFragment: ArraySlice<UInt8>? {
    guard let username, let colon = username.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    return username[..<colon]
  }

  func isFor(_ credentials: ICECredentials) -> Bool {
    receiverFragment?.elementsEqual(credentials.usernameFragment.utf8) ?? false
  }

  /// A success response that tells the peer where its request came from.
  func success(from remote: SocketAddress, key: [UInt8]) -> [UInt8] {
    success(from: remote).encoded(integrityKey: key)
  }

  func success(from remote: SocketAddress) -> STUNMessage {
    var response = STUNMessage(.success, transactionID: transactionID)
    response.mappedAddress = remote
    return response
  }

  /// A failure response; a 420 names what was not understood.
  func failure(_ code: ErrorCode, key: [UInt8]) -> [UInt8] { failure(code).encoded(integrityKey: key) }

  func failure(_ code: ErrorCode) -> STUNMessage {
    var response = STUNMessage(.failure, transactionID: transactionID)
    response.errorCode = code
    if code.code == 420 { response.unknownAttributes = notUnderstood }
    return response
  }
}
