/// What is released together: every tool, the SFU and the SDK.
public enum Release {
  /// The version that people, servers and clients are told. Cores get it as an argument.
  public static let version = "1.0.0"
}
