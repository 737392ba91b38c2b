import PalbeUnits
import PalbeWire

/// Why a password is refused.
public enum WeakPassword: String, Error, Hashable, Sendable {
  /// Fewer than 8 characters.
  case tooShort = "too_short"
  /// More than 1,024 bytes.
  case tooLong = "too_long"
  /// The e-mail, or the part before the @.
  case isEmail = "is_email"
  /// One or two characters again and again, a run of the alphabet, digits or keys, or one of the words that are tried first.
  case guessable

  var message: String {
    switch self {
    case .tooShort: "the password has fewer than 8 characters"
    case .tooLong: "the password has more than 1,024 bytes"
    case .isEmail: "the password is the e-mail"
    case .guessable: "the password is one of those that are tried first"
    }
  }
}

/// What a password must be: long enough, and not what is tried first. No rule about kinds of characters (NIST SP 800-63B §5.1.1.2).
public enum PasswordRules {
  /// Bytes at most.
  public static let byteLimit = 1_024
  /// Characters at least.
  public static let characterMinimum = 8

  /// Runs of which a whole password must not be a part, forwards or backwards.
  private static let runs = [
    "abcdefghijklmnopqrstuvwxyz", "01234567890123456789", "qwertyuiopasdfghjklzxcvbnm",
    "qwertzuiopasdfghjklyxcvbnm",
    "1q2w3e4r5t6y7u8i9o0p", "1qaz2wsx3edc4rfv",
  ]
  /// Beginnings that leave hardly anything to guess when only digits and marks follow.
  private static let words = [
    "password", "passwort", "passw0rd", "p@ssw0rd", "motdepasse", "contrasena", "iloveyou", "sunshine",
    "princess",
    "football", "baseball", "superman", "welcome", "letmein", "changeme", "trustno1", "starwars", "computer",
    "whatever", "michelle", "jennifer", "internet", "qwerty", "qwertz", "admin", "dragon", "monkey", "secret",
    "master", "shadow", "palbe", "test",
  ]

  /// Throws nothing for UTF-8 that may be a password; the reason why not otherwise.
  public static func check(_ password: Span<UInt8>, for email: Email?) throws(WeakPassword) {
    guard password.count <= byteLimit else { throw .tooLong }
    let text = String(decoding: [UInt8](password), as: UTF8.self)
    guard text.count >= characterMinimum else { throw .tooShort }
    let lower = text.lowercased()
    if let email, lower == email.text || lower == email.local { throw .isEmail }
    if Set(lower.unicodeScalars).count <= 2 { throw .guessable }
    for run in runs where run.contains(lower) || String(run.reversed()).contains(lower) { throw .guessable }
    for word in words where lower.hasPrefix(word) {
      let rest = lower.dropFirst(word.count)
      if rest.unicodeScalars.allSatisfy({ $0.isASCII && !("a"..."z").contains($0) }), rest.count <= 4 {
        throw .guessable
      }
    }
  }
}
