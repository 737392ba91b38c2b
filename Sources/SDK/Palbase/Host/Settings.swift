import Foundation

/// What the configuration file says. On every system it is a property list of the same keys, `Palbase-Info.plist`:
///
/// | key | value |
/// |---|---|
/// | `ServerURL` | where the server is, such as `https://chat.example.com` |
/// | `DataFolder` | where stores lie; else the system's place for data of the app |
/// | `TrustedCertificateFile` | a PEM file of authorities to trust instead of the system's |
/// | `VaultPassphraseFile` | a file whose bytes, without a line feed at its end, wrap the vault's key |
/// | `AllowsInsecureHTTP` | true to send tokens to a server without TLS that is not this machine |
///
/// Other keys are left alone: a newer tool may have written them. Paths are absolute or relative to the file.
package struct Settings: Sendable, Equatable {
  package var server: ServerURL
  package var dataFolder: String
  /// Where the shared folders of app groups are.
  package var groupRoot: String
  package var trustedCertificateFile: String?
  package var vaultPassphraseFile: String?

  package static let fileName = "Palbase-Info.plist"

  /// What a search depends on.
  package struct Surroundings: Sendable {
    package var environment: [String: String]
    /// The app's own resources.
    package var resourceFolder: String?
    package var executable: String
    package var home: String

    package init(environment: [String: String], resourceFolder: String?, executable: String, home: String) {
      self.environment = environment
      self.resourceFolder = resourceFolder
      self.executable = executable
      self.home = home
    }

    package static var current: Surroundings {
      Surroundings(
        environment: ProcessInfo.processInfo.environment, resourceFolder: Bundle.main.resourcePath,
        executable: Bundle.main.executablePath ?? CommandLine.arguments.first ?? "app",
        home: NSHomeDirectory())
    }

    /// Absolute paths only count, as the XDG base directories ask for.
    private func folder(_ variable: String, or fallback: String) -> String {
      guard let path = environment[variable], path.hasPrefix("/") else { return "\(home)/\(fallback)" }
      return path
    }

    /// Where the file is looked for, the first that exists. `PALBE_CONFIG` names the only one. The current folder is
    /// none of them: whoever can write there would choose where tokens go.
    package var places: [String] {
      if let named = environment["PALBE_CONFIG"], !named.isEmpty { return [named] }
      var places: [String] = []
      let beside = URL(fileURLWithPath: executable).deletingLastPathComponent().path
      for folder in [resourceFolder ?? beside, beside] where !places.contains("\(folder)/\(fileName)") {
        places.append("\(folder)/\(fileName)")
      }
      #if !canImport(Darwin)
        places.append("\(folder("XDG_CONFIG_HOME", or: ".config"))/palbe/\(fileName)")
        places.append("/etc/palbe/\(fileName)")
      #endif
      return places
    }

    var dataRoot: String {
      #if canImport(Darwin)
        "\(home)/Library/Application Support/Palbe"
      #else
        "\(folder("XDG_DATA_HOME", or: ".local/share"))/palbe"
      #endif
    }

    var programName: String { URL(fileURLWithPath: executable).lastPathComponent }
  }

  /// Finds and reads the file.
  package static func load(_ surroundings: Surroundings) throws(ConfigurationFault) -> Settings {
    let places = surroundings.places
    guard let file = places.first(where: { FileManager.default.fileExists(atPath: $0) }) else {
      throw .missing(searched: places)
    }
    guard let data = FileManager.default.contents(atPath: file), data.count <= 1 << 20,
      let list = try? PropertyListSerialization.propertyList(from: data, format: nil),
      let keys = list as? [String: Any]
    else { throw .unreadable(file: file) }
    return try Settings(Reader(keys: keys, file: file), surroundings)
  }

  private init(_ reader: Reader, _ surroundings: Surroundings) throws(ConfigurationFault) {
    guard let address = try reader.text("ServerURL") else {
      throw .keyMissing(key: "ServerURL", file: reader.file)
    }
    guard let server = ServerURL(address) else {
      throw reader.wrong("ServerURL", "an https address without user, query or fragment")
    }
    let allowsInsecure = try reader.flag("AllowsInsecureHTTP")
    guard server.isConfidential || allowsInsecure else {
      throw reader.wrong("ServerURL", "an https address, or AllowsInsecureHTTP must be true")
    }
    self.server = server
    let data = try reader.path("DataFolder")
    dataFolder = data ?? "\(surroundings.dataRoot)/\(surroundings.programName)"
    groupRoot = "\(data ?? surroundings.dataRoot)/groups"
    trustedCertificateFile = try reader.path("TrustedCertificateFile")
    vaultPassphraseFile = try reader.path("VaultPassphraseFile")
  }

  /// The values of a file, each of its type.
  private struct Reader {
    let keys: [String: Any]
    let file: String

    func wrong(_ key: String, _ wanted: String) -> ConfigurationFault {
      .wrongValue(key: key, file: file, wanted: wanted)
    }

    func text(_ key: String) throws(ConfigurationFault) -> String? {
      guard let value = keys[key] else { return nil }
      guard let text = value as? String, !text.isEmpty, !text.utf8.contains(0) else {
        throw wrong(key, "a text")
      }
      return text
    }

    func flag(_ key: String) throws(ConfigurationFault) -> Bool {
      guard let value = keys[key] else { return false }
      guard let flag = value as? Bool else { throw wrong(key, "true or false") }
      return flag
    }

    func path(_ key: String) throws(ConfigurationFault) -> String? {
      guard let text = try text(key) else { return nil }
      guard !text.hasPrefix("/") else { return text }
      return URL(fileURLWithPath: file).deletingLastPathComponent().appendingPathComponent(text)
        .standardizedFileURL.path
    }
  }

  /// The folder that the processes of an app group share; nil for a name that is none.
  package func folder(ofGroup group: String) -> String? {
    guard (1...120).contains(group.utf8.count), !group.hasPrefix("."),
      group.utf8.allSatisfy({
        (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0)
          || [45, 46, 95].contains($0)
      })
    else { return nil }
    return "\(groupRoot)/\(group)"
  }
}
