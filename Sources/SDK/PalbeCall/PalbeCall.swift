/// Palbe's own media engine for calls.
public enum PalbeCall {
  /// Registers the engine with `CallMediaRegistry`; call it once, at startup.
  public static func enable() {}
}
