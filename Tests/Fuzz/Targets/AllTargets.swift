extension FuzzTarget {
  /// Every target, by name.
  public static let all: [FuzzTarget] = [
    .socketAddress
  ]
}
