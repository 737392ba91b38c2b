// A process of an app, for tests that need a second one:
//   sdk-probe write FOLDER                 replaces a secret of a vault until it is killed
//   sdk-probe tokens FOLDER URL COUNT      asks for an access token that many times, as an app and its extension would
import Foundation
import Palbase
import Palbe
import PalbeMessaging
import PalbeUnits

let arguments = CommandLine.arguments
switch arguments.dropFirst().first {
case "write" where arguments.count == 3:
  let vault = try FileKeyVault(folder: arguments[2], random: Timebase.system.randomSource)
  print("ready")
  fflush(nil)
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
default:
  print("usage: sdk-probe write FOLDER | tokens FOLDER URL COUNT")
  exit(2)
}
