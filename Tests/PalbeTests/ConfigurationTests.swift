import Foundation
import Palbe
import PalbeSDKKit
import PalbeTestKit
import Synchronization
import Testing

@testable import Palbase

/// A process with a folder of its own, against a server in memory.
struct AppProcess {
  let folder: TemporaryFolder
  let time = VirtualTimebase()
  let server: FakeServer
  let transport: FakeTransport
  let host: PalbaseHost
  var pb: PalbeNamespace { PalbeNamespace(host: host) }
  static let keys: [String: any Sendable] = ["ServerURL": "https://palbe.test", "DataFolder": "data"]

  /// - Parameter keys: what the configuration file holds; nil for no file.
  init(_ keys: [String: any Sendable]? = keys, in folder: TemporaryFolder? = nil, server: FakeServer? = nil)
    throws
  {
    let folder = try folder ?? TemporaryFolder()
    self.folder = folder
    let timebase = time.timebase
    self.server = server ?? FakeServer { timebase.wallMilliseconds() }
    let transport = FakeTransport(server: self.server)
    self.transport = transport
    if let keys {
      try PropertyListSerialization.data(fromPropertyList: keys, format: .xml, options: 0)
        .write(to: URL(fileURLWithPath: folder.path("config.plist")))
    }
    host = PalbaseHost(
      surroundings: Self.surroundings(folder), time: timebase, transport: { _ in transport },
      connector: { _ in WebSocketConnector(trustedCertificateFile: nil) })
  }

  static func surroundings(_ folder: TemporaryFolder) -> Settings.Surroundings {
    Settings.Surroundings(
      environment: ["PALBE_CONFIG": folder.path("config.plist")], resourceFolder: nil,
      executable: folder.path("bin/app"), home: folder.path("home"))
  }
}

@Suite("pb.configure: it configures itself (S0-115..S0-119)")
struct ConfigurationTests {
  private func surroundings(_ environment: [String: String]) -> Settings.Surroundings {
    Settings.Surroundings(
      environment: environment, resourceFolder: nil, executable: "/opt/app/bin/app", home: "/h/anna")
  }

  @Test("S0-118: where the file is looked for, in this order; the current folder is none of them")
  func places() {
    #expect(
      surroundings([:]).places == [
        "/opt/app/bin/Palbase-Info.plist", "/h/anna/.config/palbe/Palbase-Info.plist",
        "/etc/palbe/Palbase-Info.plist",
      ])
    #expect(
      surroundings(["XDG_CONFIG_HOME": "/c"]).places[1] == "/c/palbe/Palbase-Info.plist")
    #expect(surroundings(["XDG_CONFIG_HOME": "c"]).places[1].hasPrefix("/h/anna/.config"))
    #expect(surroundings(["PALBE_CONFIG": "/x/y"]).places == ["/x/y"])
    #expect(surroundings(["PALBE_CONFIG": ""]).places.count == 3)
  }

  @Test("S0-118: no file: a typed error that names the places, from every throwing call, once to onError")
  func missing() async throws {
    let app = try AppProcess(nil)
    let seen = Mutex<[BackendError]>([])
    app.pb.configure(onError: { error in seen.withLock { $0.append(error) } })
    let wanted = BackendError.notConfigured(.missing(searched: [app.folder.path("config.plist")]))
    await #expect(throws: wanted) { try await app.pb.auth.signIn(token: "t") }
    await #expect(throws: wanted) { try await app.pb.auth.sessions() }
    #expect(app.pb.auth.currentUser == nil)
    for await state in app.pb.auth.states { #expect(state == .signedOut(nil)) }
    app.pb.notifications.registerDeviceToken(Data([1]))
    #expect(seen.withLock { $0 } == [wanted])
    // A handler that comes later hears of it too, and a file that comes later is found.
    app.pb.configure(onError: { error in seen.withLock { $0.append(error) } })
    #expect(seen.withLock { $0.count } == 2)
    _ = try AppProcess(AppProcess.keys, in: app.folder)
    #expect(try await app.pb.auth.signIn(token: "t").id == "usr_t")
  }

  @Test(
    "S0-118: a wrong file: which key, in which file, and what it must be",
    arguments: [
      (["DataFolder": "x"], "ServerURL is missing in FILE."),
      (["ServerURL": ""], "ServerURL in FILE must be a text."),
      (
        ["ServerURL": "palbe.test"],
        "ServerURL in FILE must be an https address without user, query or fragment."
      ),
      (
        ["ServerURL": "http://palbe.test"],
        "ServerURL in FILE must be an https address, or AllowsInsecureHTTP must be true."
      ),
      (
        ["ServerURL": "http://palbe.test", "AllowsInsecureHTTP": "maybe"],
        "AllowsInsecureHTTP in FILE must be true or false."
      ),
      (["ServerURL": "https://palbe.test", "DataFolder": ""], "DataFolder in FILE must be a text."),
    ] as [([String: String], String)])
  func wrong(keys: [String: String], text: String) throws {
    let app = try AppProcess(keys)
    let error = #expect(throws: BackendError.self) { try app.host.runtime() }
    let file = app.folder.path("config.plist")
    #expect(error?.message == "The SDK is not configured. " + text.replacing("FILE", with: file))
    #expect(error?.code == .notConfigured)
  }

  @Test(
    "S0-118: a file that is no property list of a dictionary",
    arguments: ["", "{}", "hello", "<plist><array/></plist>"])
  func unreadable(text: String) throws {
    let app = try AppProcess(nil)
    let file = app.folder.path("config.plist")
    try text.write(toFile: file, atomically: true, encoding: .utf8)
    #expect(throws: BackendError.self) { try app.host.runtime() }
  }

  @Test(
    "S0-118: a whole file: paths from where it lies, a server on this machine without TLS, unknown keys left alone"
  )
  func whole() throws {
    let app = try AppProcess([
      "ServerURL": "http://127.0.0.1:8080/", "TrustedCertificateFile": "ca.pem",
      "VaultPassphraseFile": "/run/secret",
      "SomethingNew": 7,
    ])
    let settings = try Settings.load(AppProcess.surroundings(app.folder))
    #expect(settings.server.text == "http://127.0.0.1:8080")
    #expect(settings.trustedCertificateFile == app.folder.path("ca.pem"))
    #expect(settings.vaultPassphraseFile == "/run/secret")
    #expect(settings.dataFolder == app.folder.path("home/.local/share/palbe/app"))
    #expect(settings.folder(ofGroup: "group.x") == app.folder.path("home/.local/share/palbe/groups/group.x"))
    for wrong in ["", "..", "../x", "a/b", ".x", "a b", String(repeating: "x", count: 121)] {
      #expect(settings.folder(ofGroup: wrong) == nil)
    }
  }

  @Test("2.12: the vault's key behind a passphrase file; without the file nothing opens")
  func passphrase() async throws {
    var keys = AppProcess.keys
    keys["VaultPassphraseFile"] = "secret"
    let folder = try TemporaryFolder()
    try "open sesame\n".write(toFile: folder.path("secret"), atomically: true, encoding: .utf8)
    let first = try AppProcess(keys, in: folder)
    let user = try await first.pb.auth.signIn(token: "t")
    #expect(try AppProcess(keys, in: folder).pb.auth.currentUser == user)
    try "open".write(toFile: folder.path("secret"), atomically: true, encoding: .utf8)
    #expect(throws: BackendError.storeUnavailable(.wrongPassphrase)) {
      try AppProcess(keys, in: folder).host.runtime()
    }
    try FileManager.default.removeItem(atPath: folder.path("secret"))
    #expect(throws: BackendError.storeUnavailable(.keyMissing)) {
      try AppProcess(keys, in: folder).host.runtime()
    }
  }

  @Test("S0-115, S0-116: the app group's folder takes over the session, once; an extension finds it there")
  func appGroup() async throws {
    let folder = try TemporaryFolder()
    let user = try await AppProcess(in: folder).pb.auth.signIn(token: "t")
    for _ in 0..<2 {
      let app = try AppProcess(in: folder)
      app.pb.configure(messagingAppGroup: "group.test.chat")
      #expect(app.pb.auth.currentUser == user)
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path("data/vault"))
    #expect(!names.contains("session.sealed"))
    #expect(
      FileManager.default.fileExists(atPath: folder.path("data/groups/group.test.chat/vault/session.sealed")))
    // S0-124: an extension must say so itself; without it there is nobody.
    #expect(try AppProcess(in: folder).pb.auth.currentUser == nil)
  }

  @Test(
    "S0-115: after the first use it changes nothing; a name that is none is a typed error through onError")
  func lateOrWrong() async throws {
    let app = try AppProcess()
    let user = try await app.pb.auth.signIn(token: "t")
    app.pb.configure(messagingAppGroup: "group.test.chat")
    #expect(app.pb.auth.currentUser == user)
    let wrong = try AppProcess()
    let seen = Mutex<[FailureCode]>([])
    wrong.pb.configure(onError: { error in seen.withLock { $0.append(error.code) } })
    wrong.pb.configure(messagingAppGroup: "../../etc")
    #expect(seen.withLock { $0 } == [.notConfigured])
  }
}
