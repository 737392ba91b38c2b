import PalbeCommandLine
import PalbeServerSettings
import PalbeUnits
import Testing

@testable import PalbeSFUSettings

@Suite("The configuration (S4 part 5)")
struct SettingsTests {
  static let command = Command(name: "serve", summary: "", options: Settings.schema.options, examples: [])

  static func load(
    _ arguments: [String] = [], _ environment: [String: String] = [:], files: [String: String] = [:]
  ) throws(SettingsError) -> Settings {
    let parsed: ParsedArguments
    do throws(ArgumentError) { parsed = try command.parse(arguments) } catch {
      throw SettingsError(error.description)
    }
    return try Settings(options: parsed, environment: environment) { path, _ throws(SettingsError) in
      guard let text = files[path] else { throw SettingsError("cannot read '\(path)'") }
      return Array(text.utf8)
    }
  }

  private func file(_ text: String) throws(SettingsError) -> Settings {
    try Self.load(["--config", "f"], files: ["f": text])
  }

  private func refusal(_ body: () throws(SettingsError) -> Settings) -> String {
    do throws(SettingsError) {
      _ = try body()
      return ""
    } catch { return error.description }
  }

  @Test("room.enabled_codecs: as LiveKit has it, as a list of MIME types, as an option")
  func codecs() throws {
    func read(_ list: String) throws -> [String] {
      try file("room: {enabled_codecs: \(list)}")[SFUKeys.enabledCodecs]
    }
    #expect(try Self.load()[SFUKeys.enabledCodecs] == [])
    let mappings = "[{mime: audio/opus}, {mime: video/VP8, fmtp_line: x}, {mime: video/rtx}]"
    #expect(try read(mappings) == ["audio/opus", "video/vp8"])
    #expect(try read("[audio/opus, audio/opus, video/AV1]") == ["audio/opus", "video/av1"])
    let options = try Self.load(["--codec", "audio/opus,video/vp9", "--codec", "video/h264"])
    #expect(options[SFUKeys.enabledCodecs] == ["audio/opus", "video/vp9", "video/h264"])
    for bad in ["[vp8]", "[{codec: video/vp8}]", "[{fmtp_line: x}]", "[video/h265]", "[[video/vp8]]"] {
      let text = refusal { () throws(SettingsError) in try file("room: {enabled_codecs: \(bad)}") }
      #expect(text.contains("room.enabled_codecs"), "\(bad): \(text)")
    }
  }

  @Test("option before variable before file before default, each with its source")
  func precedence() throws {
    let files = ["f": "port: 1\nroom:\n  empty_timeout: 10\nlogging: {level: warn}\n"]
    let environment = ["PALBE_SFU_CONFIG": "f", "PALBE_SFU_PORT": "2", "PALBE_SFU_ROOM_EMPTY_TIMEOUT": "20s"]
    let settings = try Self.load(["--port", "3"], environment, files: files)
    #expect(settings[SFUKeys.port] == 3)
    #expect(settings.source(of: SFUKeys.port) == .option("--port"))
    #expect(settings[SFUKeys.emptyTimeout] == .seconds(20))
    #expect(settings.source(of: SFUKeys.emptyTimeout) == .variable("PALBE_SFU_ROOM_EMPTY_TIMEOUT"))
    #expect(settings[SFUKeys.logLevel] == "warning")
    #expect(settings.source(of: SFUKeys.logLevel) == .file("f", line: 4))
    #expect(settings[SFUKeys.departureTimeout] == .seconds(20))
    #expect(settings.source(of: SFUKeys.departureTimeout) == .standard)
  }

  @Test(
    "an operator's LiveKit file works: its keys where they mean the same, a word about each of the others")
  func liveKitFile() throws {
    let settings = try file(
      """
      port: 7880
      bind_addresses:
          - ""
      log_level: info
      rtc:
          tcp_port: 7881
          use_external_ip: true
          port_range_start: 50000
          port_range_end: 60000
          udp_port: 7882-7885
          node_ip: 203.0.113.7
          enable_loopback_candidate: false
          pli_throttle: {low_quality: 400ms, mid_quality: 1s, high_quality: 1s}
          turn_servers:
            - {host: turn.example.org, port: 443, protocol: tls, secret: s3cr3t}
            - {host: 198.51.100.4, protocol: udp, username: u, credential: c}
      redis:
          address: redis:6379
      turn:
          enabled: false
      room:
          auto_create: false
          empty_timeout: 300
          departure_timeout: 20
          max_participants: 50
          enable_remote_unmute: true
      keys:
          APIabc: "0123456789abcdef0123456789abcdef"
      """)
    #expect(settings[SFUKeys.udpPort] == 7_882...7_885)
    #expect(settings[SFUKeys.nodeIP] == SocketAddress(ipv4: 203, 0, 113, 7, port: 0))
    #expect(settings[SFUKeys.pliThrottle] == .milliseconds(400))
    #expect(
      settings[SFUKeys.turnServers].map(\.url) == [
        "turns:turn.example.org:443?transport=tcp", "turn:198.51.100.4:3478?transport=udp",
      ])
    #expect(settings[SFUKeys.autoCreate] == false)
    #expect(settings[SFUKeys.maxParticipants] == 50)
    #expect(settings.apiKeys == [APIKey(name: "APIabc", secret: "0123456789abcdef0123456789abcdef")])
    #expect(settings.warnings.count == 3, "\(settings.warnings)")
    #expect(settings.warnings.contains { $0.contains("'redis'") && $0.contains("line 17") })
    #expect(settings.warnings.contains { $0.contains("'rtc.port_range_start'") })
  }

  @Test("LiveKit's newer keys get a word each, and stop nobody")
  func newerKeys() throws {
    let settings = try file(
      """
      enable_data_tracks: true
      enable_participant_data_blob: true
      debug_handler: {enabled: true}
      rtc:
        congestion_control:
          enabled: true
          use_send_side_bwe: true
          send_side_bwe: {probe: {}}
          stream_allocator: {probe_mode: padding}
        datachannel_data_track_target_latency: 100ms
        enable_warp: true
      room: {sync_streams: true, update_batch_target_size: 131072, create_room_attempts: 3}
      limit: {max_data_blobs_size: 64000, signal_message_size_limit: 2097152}
      """)
    #expect(settings.warnings.count == 13, "\(settings.warnings)")
  }

  @Test(
    "one line, with place and suggestion",
    arguments: [
      ("prot: 1", "f: line 1, column 1: unknown key 'prot'; did you mean 'port'?"),
      (
        "room:\n  auto_creat: true",
        "f: line 2, column 3: unknown key 'room.auto_creat'; did you mean 'room.auto_create'?"
      ),
      ("udp_port: 1", "f: line 1, column 1: unknown key 'udp_port'; did you mean 'rtc.udp_port'?"),
      ("zzzzzzzzzzzz: 1", "f: line 1, column 1: unknown key 'zzzzzzzzzzzz'"),
      ("port: many", "f: line 1, column 7: 'port' is 'many'; expected a whole number from 0 to 65535"),
      ("port: 70000", "f: line 1, column 7: 'port' is '70000'; expected a whole number from 0 to 65535"),
      ("port: [1]", "f: line 1, column 7: 'port' is malformed; expected a whole number from 0 to 65535"),
      ("room: 3", "f: line 1, column 7: 'room' is text; expected a mapping"),
      ("- a", "f: line 1, column 1: the file is a list; expected a mapping"),
      ("keys: {a: [x]}", "f: line 1, column 11: 'keys' is malformed; expected a mapping of names to secrets"),
      (
        "log_level: info\nlogging: {level: info}",
        "f: line 2, column 11: 'logging.level' is set twice, under two names"
      ),
      (
        "rtc: {interfaces: {includes: [en0]}}",
        "f: line 1, column 7: 'rtc.interfaces' is not supported: name the address to announce in rtc.node_ip"
      ),
      (
        "rtc: {turn_servers: [{host: a b, secret: s}]}",
        "f: line 1, column 29: 'rtc.turn_servers' is malformed; expected a host name or an address as 'host'"
      ),
      (
        "rtc: {turn_servers: [{host: a}]}",
        "f: line 1, column 22: 'rtc.turn_servers' is malformed; expected either 'secret', or both 'username' and 'credential'"
      ),
      (
        "room: {empty_timeout: -1}",
        "f: line 1, column 23: 'room.empty_timeout' is '-1'; expected a time from 0s to 604800s, such as 12h or 30d"
      ),
      (
        "rtc: {node_ip: '::'}",
        "f: line 1, column 16: 'rtc.node_ip' is '::'; expected an IPv4 or IPv6 address other than 0.0.0.0 and ::"
      ),
      ("a: [", "f: line 2, column 1: did not find expected node content"),
      ("rtc: {udp_port: 7882-7883}\nworkers: 3", "3 workers need as many UDP ports; 'rtc.udp_port' has 2"),
    ])
  func refusals(text: String, line: String) {
    #expect(refusal { () throws(SettingsError) in try file(text) } == line)
  }

  @Test("options and variables are refused by their own names")
  func ownNames() {
    #expect(
      refusal { () throws(SettingsError) in try Self.load(["--port", "x"]) }
        == "option '--port' is 'x'; expected a whole number from 0 to 65535")
    #expect(
      refusal { () throws(SettingsError) in try Self.load([], ["PALBE_SFU_PORT": "x"]) }
        == "variable PALBE_SFU_PORT is 'x'; expected a whole number from 0 to 65535")
    #expect(
      refusal { () throws(SettingsError) in try Self.load([], ["PALBE_SFU_PROT": "1"]) }
        == "unknown variable 'PALBE_SFU_PROT'; did you mean 'PALBE_SFU_PORT'?")
    #expect(refusal { () throws(SettingsError) in try Self.load([], ["PALBE_SFU_URL": "http://x"]) }.isEmpty)
    #expect(refusal { () throws(SettingsError) in try Self.load(["--config", "g"]) } == "cannot read 'g'")
  }

  @Test("keys come from options, variables, LiveKit's variable, the file, and a key file")
  func keys() throws {
    func names(_ settings: Settings) -> [String] { settings.apiKeys.map { "\($0.name)=\($0.secret)" } }
    #expect(names(try Self.load(["--key", "a:b:c", "--key", "d:e"])) == ["a=b:c", "d=e"])
    #expect(names(try Self.load(["--key", "a:#[{&*!x"])) == ["a=#[{&*!x"])
    #expect(names(try Self.load([], ["LIVEKIT_KEYS": "a: b\nc: d"])) == ["a=b", "c=d"])
    #expect(names(try Self.load([], ["PALBE_SFU_KEYS": "a:b", "LIVEKIT_KEYS": "c: d"])) == ["a=b"])
    #expect(names(try Self.load([], ["LIVEKIT_CONFIG": "keys:\n  a: b\n"])) == ["a=b"])
    #expect(names(try Self.load(["--key-file", "k"], files: ["k": "a: b\n"])) == ["a=b"])
    #expect(names(try Self.load(["--dev", "--key", "a:b"])) == ["a=b", "devkey=secret"])
    #expect(names(try Self.load(["--dev=false"], ["PALBE_SFU_DEVELOPMENT": "true"])) == [])
    #expect(
      refusal { () throws(SettingsError) in try Self.load(["--key", "a:b", "--key", "a:c"]) }.contains(
        "twice"))
    #expect(
      refusal { () throws(SettingsError) in try Self.load(["--dev", "--key", "devkey:x"]) }.contains("twice"))
  }

  @Test("no message and no document repeats a secret")
  func secrets() throws {
    let texts = [
      "keys: {a: sEcReT, b: [sEcReT]}", "keys: sEcReT", "keys: [sEcReT]", "keys: {a: sEcReT, a: x}",
      "rtc: {turn_servers: [{host: h, secret: sEcReT, ttl: x}]}",
      "rtc: {turn_servers: [{host: h, username: u, credential: sEcReT, secret: sEcReT}]}",
    ]
    for text in texts {
      let line = refusal { () throws(SettingsError) in try file(text) }
      #expect(!line.isEmpty && !line.contains("sEcReT"), "\(line)")
    }
    #expect(!refusal { () throws(SettingsError) in try Self.load(["--key", "sEcReT"]) }.contains("sEcReT"))
    #expect(
      !refusal { () throws(SettingsError) in try Self.load([], ["LIVEKIT_KEYS": "a: [sEcReT"]) }.contains(
        "sEcReT"))
    let settings = try file(
      "keys: {a: sEcReT}\nrtc: {turn_servers: [{host: h, secret: sEcReT}, {host: h, username: u, credential: sEcReT}]}"
    )
    #expect(settings.document.contains("a: '***'"))
    #expect(!settings.document.contains("sEcReT"))
  }

  @Test("the document in effect is a file that means the same")
  func document() throws {
    let settings = try Self.load(
      [
        "--port", "81", "--udp-port", "100-103", "--node-ip", "2001:db8::7", "--empty-timeout", "1500ms",
        "--log-json",
      ])
    let again = try file(settings.document)
    #expect(settings.document.contains("port: 81  # --port\n"))
    for setting in SFUKeys.all { #expect(again.shown(setting) == settings.shown(setting), "\(setting.name)") }
  }

  @Test("changes between two configurations, and which need a restart")
  func changes() throws {
    let old = try file("port: 1\nkeys: {a: b}\n")
    let new = try file("port: 2\nkeys: {a: c}\nroom: {empty_timeout: 1}\n")
    #expect(old.changes(to: new).map(\.name) == ["port", "keys", "room.empty_timeout"])
    #expect(old.changes(to: new).filter { !$0.reloads }.map(\.name) == ["port"])
    #expect(old.changes(to: old).isEmpty)
  }

  @Test("Bug: a reload was compared with the last file read, not with what runs")
  func reloaded() throws {
    let started = try file("port: 1\nkeys: {a: b}\n")
    let changed = try file("port: 2\nkeys: {a: c}\ndevelopment: true\n")
    let running = try started.reloaded(with: changed)
    #expect(running[SFUKeys.port] == 1 && running.apiKeys.map(\.secret) == ["c"])
    // Told again as long as the file says so, and no longer when it does not.
    #expect(running.changes(to: changed).map(\.name) == ["port", "development"])
    #expect(running.changes(to: started).map(\.name) == ["keys"])
    // A key of a trial that goes on until a restart, and the same name in the file.
    let trial = try Self.load(["--dev"])
    let clash = try file("keys: {devkey: x}\n")
    #expect(refusal { () throws(SettingsError) in try trial.reloaded(with: clash) }.contains("there twice"))
  }

  @Test(
    "Bug: a TLS key without a certificate was ignored; a line break in a webhook's address or a path was taken as it is"
  )
  func refusals() throws {
    let key = ["--key", "a:b"]
    #expect(
      refusal { () throws(SettingsError) in try Self.load(key + ["--tls-key", "k"]) }
        == "'tls.key_file' needs 'tls.cert_file'")
    for url in ["http://x/\r\nA: b", "http://", "http:///x", "ftp://x", "http://x y/"] {
      let text = refusal { () throws(SettingsError) in try Self.load(key + ["--webhook", url]) }
      #expect(text.contains("expected a list of http or https addresses"), "\(url)")
    }
    let text = "port: 5\naudit_log: \"x\\N\\Ly\"\n"
    let document = try Self.load(["--config", "a\nb: c"], files: ["a\nb: c": text]).document
    #expect(document.contains(#"port: 5  # a\u{A}b: c:1"#))
    #expect(document.contains(#"audit_log: "x\x85\u2028y""#))
  }

  @Test("every key has one name, one option, one variable, and a default that it would take itself")
  func schema() throws {
    let names = SFUKeys.all.flatMap { [$0.name] + $0.aliases }
    #expect(Set(names).count == names.count)
    #expect(Set(SFUKeys.all.map(\.option)).count == SFUKeys.all.count)
    #expect(Set(SFUKeys.all.map { Settings.schema.variable(of: $0) }).count == SFUKeys.all.count)
    for name in names { #expect(ForeignKeys.answers[name] == nil, "\(name)") }
    for setting in SFUKeys.all {
      #expect(!setting.help.isEmpty && !setting.help.hasSuffix("."))
    }
    _ = try file(try Self.load().document)
  }
}
