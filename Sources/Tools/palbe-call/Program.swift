import PalbeCommandLine
import PalbeUnits

/// With the command that prints a shell's completion.
let program = {
  var program = commands
  program.commands.append(program.completionCommand)
  return program
}()

private let commands = Program(
  name: "palbe-call", version: Release.version,
  summary: "joins calls, demonstrates an end-to-end encrypted one, and mints tokens for tests",
  commands: [
    Command(
      name: "demo",
      summary: "two participants hold an encrypted call through an SFU of its own, and it is checked",
      options: [
        .value("--seconds", "N", "how long the call is measured, 3 to 600", default: "10"),
        .value("--report", "FILE", "writes the result as JSON too"),
        .value("--sfu", "PATH", "the palbe-sfu program (default: the one beside palbe-call)"),
        .value("--setups", "N", "how many set-ups are timed, 1 to 50; the median is reported", default: "1"),
      ],
      examples: ["palbe-call demo", "palbe-call demo --seconds 30 --report out.json"]),
    Command(
      name: "join", summary: "joins a room, sends files or test signals, records what others send",
      options: [
        .value("--url", "WS", "the SFU's address: ws://… or wss://…"),
        .value("--token", "JWT", "the access token; it names the room and who joins"),
        .value("--key", "HEX", "the call's key, 64 hexadecimal digits: end-to-end encryption"),
        .value(
          "--e2ee", "MODE",
          "sframe (needs --key), livekit (LiveKit's clients take part; needs a passphrase) or none"),
        .value(
          "--passphrase-file", "FILE",
          "holds the passphrase of --e2ee livekit (default: the variable PALBE_PASSPHRASE)"),
        .value(
          "--kdf", "KDF", "how --e2ee livekit makes a key of it: pbkdf2 (what clients do by default) or hkdf"),
        .flag("--no-e2ee", "no end-to-end encryption: the SFU can read the media"),
        .value("--audio", "FILE", "a WAV file to send, in a loop (default: a voice-like test signal)"),
        .value("--video", "FILE", "a Y4M file to send, in a loop (default: a moving test card)"),
        .flag("--listen", "sends nothing"),
        .value("--record", "DIR", "writes one WAV and one Y4M file a participant into this folder"),
        .value("--seconds", "N", "leaves after so long, 1 to 86400 (default: stays until Ctrl-C)"),
      ],
      examples: [
        "palbe-call join --url ws://127.0.0.1:7880 --token $(palbe-call token --room r --identity ada) --no-e2ee",
        "palbe-call join --url wss://sfu.example --token JWT --e2ee livekit --passphrase-file secret.txt",
        "palbe-call join --url wss://sfu.example --token JWT --key HEX --audio talk.wav --video talk.y4m --record out",
      ]),
    Command(
      name: "token", summary: "mints an access token for a test",
      options: [
        .value("--room", "NAME", "the room to join"),
        .value("--identity", "ID", "who joins: user#device, or a user"),
        .value("--name", "TEXT", "a name to show"),
        .value("--key", APIKey.placeholder, "the API key, as given to palbe-sfu", default: "devkey:secret"),
        .value("--valid", "SECONDS", "until it expires; negative for an expired one", default: "21600"),
      ],
      examples: ["palbe-call token --room r --identity ada#phone"]),
  ])
