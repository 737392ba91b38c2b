// A process of an app, for tests that need a second one:
//   sdk-probe write FOLDER                 replaces a secret of a vault until it is killed
//   sdk-probe tokens FOLDER URL COUNT      asks for an access token that many times, as an app and its extension would
//   sdk-probe store FOLDER hold            opens the chats' file of `StorageProbe`, then waits
//   sdk-probe store FOLDER closed          opens and closes it, then waits
//   sdk-probe store FOLDER write           stores one state after another, and says the number of each
//   sdk-probe chat USER COUNT              sends that many texts to a user as who is signed in at PALBE_CONFIG, then waits
import Foundation
import Palbase
import Palbe
import PalbeMessaging
import PalbeUnits

func say(_ line: String) {
  print(line)
  fflush(nil)
}

let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "write" where arguments.count == 3:
  let vault = try FileKeyVault(folder: arguments[2], random: Timebase.system.randomSource)
  say("ready")
  var count: UInt8 = 0
  while true {
    count &+= 1
    try vault.write([UInt8](repeating: count, count: 5_000), as: "secret")
  }
case "tokens" where arguments.count == 5:
  let time = Timebase.system
  let vault = try FileKeyVault(folder: arguments[2], random: time.randomSource)
  let http = HTTPClient(server: ServerURL(arguments[3])!, transport: CurlTransport(), time: time)
  let authority = SessionAuthority(vault: vault, http: http, lockPath: arguments[2] + "/session.lock")
  for _ in 0..<Int(arguments[4])! {
    let token = try await authority.accessToken()
    _ = try await authority.accessToken(replacing: token.text)
  }
  print("done")
case "chat" where arguments.count == 4:
  try await ChatProbe.run(peer: UserID(arguments[2])!, count: Int(arguments[3])!)
case "store" where arguments.count == 4:
  let probe = try StorageProbe(folder: arguments[2])
  switch arguments[3] {
  case "write":
    while true { say("\(try probe.step())") }
  case "closed": probe.storage.close()
  default: break
  }
  say("ready")
  while true { sleep(60) }
default:
  print("usage: sdk-probe write FOLDER | tokens FOLDER URL COUNT | store FOLDER hold|closed|write")
  exit(2)
}
