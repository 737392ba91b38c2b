package import PalbeFrameEncryption

/// What may change about the keys of a call in LiveKit's frame format.
package enum LiveKitKeyChange: Sendable {
  /// A slot gets this key: everybody's, or one participant's alone. Our own identity's is sent under.
  case set(SharedLiveKitKey, index: Int, identity: String?)
  /// We send under the next step of a slot's key; receivers follow within their windows.
  case ratchet(index: Int)
  /// We send under the key of this slot.
  case send(index: Int)
}
