package import Palbase
package import PalbeMLS

/// Why the file of this device's chats cannot be opened.
package enum SealedStorageError: Error, Equatable, Sendable {
  /// There is none, and none was to be made.
  case missing
  /// There is one, and the vault has lost its key. It is never given a new one.
  case keyMissing
  /// The vault's key is another one.
  case wrongKey
  /// The vault refused.
  case vault(StoreFault)
  /// The folder or the file could not be made.
  case folder(StoreFault)
  /// The database refused: `busy` while another process has it open, `newerSchema`, `failed`.
  case storage(MLSStorageError)
}

extension BackendError {
  /// What an app is told.
  package init(_ error: SealedStorageError) {
    switch error {
    case .missing: self = .storeUnavailable(.corrupted(SealedStorage.fileName))
    case .keyMissing, .wrongKey: self = .storeUnavailable(.keyMissing)
    case .vault(let fault), .folder(let fault): self = .storeUnavailable(fault)
    case .storage(let error): self = BackendError(error)
    }
  }

  /// What an app is told of an error of the storage.
  package init(_ error: MLSStorageError) {
    switch error {
    case .busy: self = .accountBusy
    // SQLite's own number: its disk is full.
    case .failed(code: 13): self = .storeUnavailable(.full)
    case .failed(let code): self = .storeUnavailable(.system(code))
    case .newerSchema: self = .storeUnavailable(.newerSchema)
    case .corrupted, .inconsistent, .wrongClient, .conflict, .groupExists:
      self = .storeUnavailable(.corrupted(SealedStorage.fileName))
    case .unusable: self = .storeUnavailable(.system(-1))
    }
  }
}
