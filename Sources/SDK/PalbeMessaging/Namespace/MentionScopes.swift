import Foundation
import Palbase
import PalbeChatCore
import PalbeCrypto
import PalbeUnits
import PalbeWire

/// The chats that shall tell of mentions alone. The server knows only that they do not push (`NotifyScope.mentions`), so this
/// device remembers which they are, sealed in the vault.
@MainActor final class MentionScopes {
  private let vault: any KeyVault
  private let name: String
  private var chats: Set<String>

  init(_ vault: any KeyVault, _ me: UserID) {
    self.vault = vault
    name = "mention-scopes.1." + Hex.encode(Array(SHA256.hash(me.bytes)[..<16]))
    let bytes = (try? vault.read(name)) ?? nil
    chats = bytes.flatMap { try? JSONDecoder().decode(Set<String>.self, from: Data($0)) } ?? []
  }

  func contains(_ chat: ChatID) -> Bool { chats.contains(chat.text) }

  /// Throws `store_unavailable` when it cannot be remembered.
  func set(_ isOn: Bool, _ chat: ChatID) throws {
    var new = chats
    if isOn { new.insert(chat.text) } else { new.remove(chat.text) }
    guard new != chats else { return }
    // Texts only: it cannot fail.
    let bytes = [UInt8](try! JSONEncoder().encode(new.sorted()))
    do throws(StoreFault) { try vault.write(bytes, as: name) } catch {
      throw BackendError.storeUnavailable(error)
    }
    chats = new
  }
}

extension ShellSettings {
  /// As the app wants it.
  init(_ settings: MessagingSettings) {
    self.init()
    asksConsent = settings.asksConsent
    historyLimit = max(1, settings.historyLimit)
  }
}
