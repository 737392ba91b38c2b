import Foundation
import PalbeAccountsCore
import PalbeBackendCore
import PalbeCommandLine
import PalbeServerObservation
import PalbeServerSettings
import PalbeTestKit
import PalbeUnits
import PalbeWebServer
import Testing

@testable import PalbeBackendServer

@Suite("palbe-server's configuration")
struct ServerSettingsTests {
  private static let command = Command(
    name: "serve", summary: "", options: ServerSettings.schema.options, examples: [])

  private func load(
    _ arguments: [String] = [], _ environment: [String: String] = [:], file: String = ""
  ) throws(SettingsError) -> ServerSettings {
    let parsed: ParsedArguments
    do throws(ArgumentError) { parsed = try Self.command.parse(arguments) } catch {
      throw SettingsError(error.description)
    }
    return try ServerSettings(options: parsed, environment: environment) { _ in Array(file.utf8) }
  }

  @Test("File, variables and options reach what runs")
  func configuration() throws {
    let settings = try load(
      [
        "--config", "f", "--max-blob", "5MiB", "--address-connection-rate", "9", "--head-time", "20s",
        "--body-time", "30s", "--body-rate", "2KiB",
      ],
      ["PALBE_SERVER_PORT": "0", "PALBE_SERVER_LIMIT_REQUESTS_PER_DEVICE": "7"],
      file: """
        data: /srv/data
        public_url: https://chat.example.org
        push: {command: [/bin/cat, -u]}
        retention: {messages: 48h}
        accounts: {sign_up: false}
        prometheus: {port: 0, username: a, password: b}
        """)
    let configuration = try #require(settings.configuration)
    #expect(configuration.data == "/srv/data" && configuration.host == "::" && configuration.port == 0)
    #expect(configuration.loop.limits.blobByteCount == 5 << 20)
    #expect(configuration.loop.limits.requestsPerSecond == 7 && configuration.loop.limits.requestBurst == 70)
    #expect(configuration.loop.limits.retention == .seconds(2 * 86_400))
    #expect(configuration.web.perAddress.connectionsPerSecond == 9)
    #expect(configuration.web.perAddress.connectionBurst == 90)
    #expect(configuration.web.requestTimeout == .seconds(20) && configuration.web.bodyTimeout == .seconds(30))
    #expect(configuration.web.bodyRate == 2_048)
    #expect(configuration.pushes == .command(["/bin/cat", "-u"]))
    #expect(configuration.publicURL == "https://chat.example.org")
    #expect(!configuration.accounts.rules.allowsSignUp && !configuration.accounts.isDevelopment)
    #expect(configuration.metrics?.page.password == "b")
    #expect(!settings.values.document.contains("password: b"))
    let trial = try #require(load(["--dev"]).configuration)
    #expect(trial.host == "127.0.0.1" && trial.data == "palbe-data" && trial.accounts.isDevelopment)
    #expect(trial.host == "127.0.0.1")
    let shown = try load(["--dev", "--no-sign-up", "--retention", "30d"])
    #expect(
      shown.values.document.contains("bind_address: \"127.0.0.1\"  # by development")
        || shown.values.document.contains("bind_address: 127.0.0.1  # by development"))
    #expect(shown.values.document.contains("data: \"palbe-data\"  # by development"))
    #expect(shown.configuration?.accounts.rules.allowsSignUp == false)
    #expect(shown.configuration?.loop.limits.retention == .days(30))
    #expect(try load(["--dev", "--host", "::1"]).host == "::1")
    #expect(try load().configuration == nil)
  }

  @Test(
    "What is wrong is refused with its place",
    arguments: [
      (["--max-blob", "5MB"], "'--max-blob' is '5MB'; expected a size"),
      (["--max-message", "257KiB"], "'--max-message' is '257KiB'; expected a size"),
      (["--push-file", "a", "--push-socket", "b"], "'push.file', 'push.socket' and 'push.command'"),
      (["--prometheus-username", "a"], "go together"), (["--tls-key", "a"], "needs 'tls.cert_file'"),
      (["--public-url", "ftp://a"], "expected an http or https address"), (["--port", "70000"], "--port"),
      (["--public-url", "http://x/\r\nEvil: 1"], "expected an http or https address"),
      (["--public-url", "https://"], "expected an http or https address"),
    ])
  func refused(_ arguments: [String], _ words: String) {
    let error = #expect(throws: SettingsError.self) { try load(arguments) }
    #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
  }

  @Test(
    "Bug: a reload was compared with the last file read; a change that waits for a restart is told each time, one taken back is none"
  )
  func reloads() throws {
    let started = try load(["--config", "f"], file: "port: 1\nlimit: {message_size: 64KiB}\n")
    let changed = try load(["--config", "f"], file: "port: 2\nlimit: {message_size: 32KiB}\n")
    func names(_ new: ServerSettings, over running: ServerSettings) -> [String] {
      running.values.changes(to: new.values).map(\.name)
    }
    #expect(names(changed, over: started) == ["port", "limit.message_size"])
    let running = started.reloaded(with: changed)
    #expect(running[ServerKeys.port] == 1 && running.adjustments.limits.messageByteCount == 32 << 10)
    #expect(names(changed, over: running) == ["port"])
    #expect(names(started, over: running) == ["limit.message_size"])
    #expect(names(started, over: running.reloaded(with: started)) == [])
    // A key that is gone from the file has its default again.
    #expect(try running.reloaded(with: load()).adjustments.limits.messageByteCount == 256 << 10)
  }

  @Test("docs/server.md has the table that `palbe-server config --table` prints")
  func table() throws {
    let text = try String(
      contentsOf: Vectors.projectRoot.appendingPathComponent("docs/server.md"), encoding: .utf8)
    let start = "<!-- palbe-server config --table -->\n"
    let begin = try #require(text.range(of: start)?.upperBound)
    let table = text[begin...].range(of: "\n<!-- end -->").map { String(text[begin..<$0.lowerBound]) }
    #expect(table == ServerSettings.schema.table)
  }
}
