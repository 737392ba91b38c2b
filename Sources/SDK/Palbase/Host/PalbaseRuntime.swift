import Foundation
import PalbeUnits

/// Everything that belongs to one configuration: what the modules above stand on.
package final class PalbaseRuntime: Sendable {
  package let settings: Settings
  package let time: Timebase
  /// Where stores lie: the app's own folder, or the one that it shares with its extensions.
  package let folder: String
  package let vault: any KeyVault
  package let sessions: SessionAuthority
  package let devices: DeviceRegistry
  package let client: BackendClient
  package let pushTokens: PushTokens
  package let realtime: RealtimeSocket

  /// - Parameter group: the app group whose folder is used; what is in the app's own moves there.
  init(
    settings: Settings, group: String?, time: Timebase, transport: any HTTPTransport,
    connector: any RealtimeConnector
  ) throws(BackendError) {
    self.settings = settings
    self.time = time
    let shared: String?
    if let group {
      guard let folder = settings.folder(ofGroup: group) else {
        throw .notConfigured(
          .wrongValue(
            key: "messagingAppGroup", file: "pb.configure", wanted: "the identifier of an app group"))
      }
      shared = folder
    } else {
      shared = nil
    }
    folder = shared ?? settings.dataFolder
    do throws(StoreFault) {
      let passphrase = try Self.passphrase(settings.vaultPassphraseFile)
      let vault = try FileKeyVault(
        folder: "\(folder)/vault", passphrase: passphrase, random: time.randomSource)
      if shared != nil { Self.migrate(from: "\(settings.dataFolder)/vault", to: vault, passphrase, time) }
      self.vault = vault
    } catch {
      throw .storeUnavailable(error)
    }
    let http = HTTPClient(server: settings.server, transport: transport, time: time)
    sessions = SessionAuthority(vault: vault, http: http, lockPath: "\(folder)/vault/session.lock")
    devices = DeviceRegistry(vault: vault)
    client = BackendClient(http: http, sessions: sessions, devices: devices)
    pushTokens = PushTokens(client: client, vault: vault)
    realtime = RealtimeSocket(
      server: settings.server, sessions: sessions, devices: devices, connector: connector, time: time)
  }

  private static func passphrase(_ file: String?) throws(StoreFault) -> [UInt8]? {
    guard let file else { return nil }
    guard var bytes = FileManager.default.contents(atPath: file).map({ [UInt8]($0) }), bytes.count <= 65_536
    else { throw .keyMissing }
    if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
    guard !bytes.isEmpty else { throw .keyMissing }
    return bytes
  }

  /// S0-116: by copy, check and removal; again and again harmless; a failure leaves what was there.
  private static func migrate(
    from old: String, to vault: FileKeyVault, _ passphrase: [UInt8]?, _ time: Timebase
  ) {
    guard FileManager.default.fileExists(atPath: "\(old)/\(VaultKey.fileName)") else { return }
    do throws(StoreFault) {
      let source = try FileKeyVault(folder: old, passphrase: passphrase, random: time.randomSource)
      if !vault.adopt(from: source) { SDKLog.note("not every secret could be moved to the app group") }
    } catch {
      SDKLog.note("the secrets could not be moved to the app group: \(error)")
    }
  }
}
