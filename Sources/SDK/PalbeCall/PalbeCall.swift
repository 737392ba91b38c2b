import PalbeMessaging

/// Palbe's own media engine for calls, which speaks to a LiveKit-compatible SFU.
///
///     PalbeCall.enable()      // once, at startup
///
/// On Linux a call sends silence and, with video, a black picture: there is no audio device or camera yet.
public enum PalbeCall {
  /// Registers the engine with `CallMediaRegistry`, in the place of one registered before.
  public static func enable() {
    CallMediaRegistry.shared.register { e2ee in SFUCallTransport(e2ee: e2ee) }
  }
}
