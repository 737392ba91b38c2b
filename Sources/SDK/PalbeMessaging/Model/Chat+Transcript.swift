import PalbeChatCore
import PalbeUnits

/// How a chat's transcript is kept: a page at opening and at paging, actions in between (S3-20 to S3-23).
///
/// What is told while a page or a row is being read is noted, and holds against what was read: both may be the newer one,
/// but what is told last is the newest.
extension Chat {
  /// Rows of the first page.
  static let headCount = 50

  /// Reads the newest messages, once.
  func load() async throws {
    guard !isLoaded, local != nil else { return }
    if let loading { return try await loading.value }
    let task = Task { try await self.readHead() }
    loading = task
    defer { loading = nil }
    try await task.value
  }

  private func readHead() async throws {
    guard let session, let local else { return }
    beginRead()
    defer { endRead() }
    let start = told.count
    let page = try await session.openShell().page(of: local, limit: Self.headCount)
    guard let maker else { return }
    var window = TranscriptWindow()
    _ = window.merge(page) { maker.message($0) }
    shown = Shown(window: window)
    isLoaded = true
    wanted.insert(.transcript)
    session.touch(self)
    apply(Array(told[start...]))
  }

  /// Reads the newest messages again; until they are here the old ones show.
  func reload() {
    guard isLoaded else { return }
    isLoaded = false
    Task { try? await self.load() }
  }

  /// Lets go of what is held; the next look reads it again.
  func unload() {
    guard isLoaded else { return }
    isLoaded = false
    wanted.remove(.transcript)
    shown = Shown()
  }

  /// Reads older messages of this device's store; returns how many came (S0-51, S0-52). Two calls at once are one. There is
  /// nothing behind what this device keeps: no server has it.
  public func loadEarlier(limit: Int = 50) async throws -> Int {
    guard limit > 0, local != nil else { return 0 }
    if let paging { return try await paging.value }
    let task = Task { try await self.page(min(limit, 1_000)) }
    paging = task
    defer { paging = nil }
    return try await task.value
  }

  private func page(_ limit: Int) async throws -> Int {
    try await load()
    guard let session, let local, let earlier = shown.window.earlier else { return 0 }
    beginRead()
    defer { endRead() }
    let start = told.count
    var page = try await session.openShell().page(of: local, before: earlier, limit: limit)
    // It was let go of meanwhile, or trimmed: the page does not join what is there.
    guard isLoaded, shown.window.earlier == earlier, let maker else { return 0 }
    for change in told[start...] {
      switch change {
      case .inserted(let row), .updated(let row):
        if let place = page.rows.firstIndex(where: { $0.id == row.id }) { page.rows[place] = row }
      case .removed(let id): page.rows.removeAll { $0.id == id }
      case .elevated: break
      }
    }
    return shown.window.merge(page) { maker.message($0) }
  }

  // MARK: Actions

  func take(_ changes: [TranscriptChange]) {
    if reads > 0 { told += changes }
    for case .elevated(let id) in changes { elevate(id, among: changes) }
    apply(changes)
  }

  private func apply(_ changes: [TranscriptChange]) {
    for change in changes { forgetUpload(change) }
    guard isLoaded, let maker else { return }
    let relevant = changes.filter { change in
      switch change {
      case .inserted: true
      case .updated(let row): shown.window.contains(row.id)
      case .removed(let id): shown.window.contains(id)
      case .elevated: false
      }
    }
    let answers = answers(to: changes)
    if !relevant.isEmpty {
      shown.apply(relevant) { maker.message($0) }
    }
    if !answers.isEmpty { reread(answers) }
  }

  private func forgetUpload(_ change: TranscriptChange) {
    switch change {
    case .inserted(let row), .updated(let row):
      if row.delivery != .pending, uploads[row.id] != nil { uploads[row.id] = nil }
    case .removed(let id): if uploads[id] != nil { uploads[id] = nil }
    case .elevated: break
    }
  }

  /// Whose quotes may be others now.
  private func answers(to changes: [TranscriptChange]) -> Set<ClientMessageID> {
    var result: Set<ClientMessageID> = []
    for change in changes {
      switch change {
      case .inserted(let row), .updated(let row): result.formUnion(shown.window.answers(to: row.id))
      case .removed(let id): result.formUnion(shown.window.answers(to: id))
      case .elevated: break
      }
    }
    return result
  }

  /// A quote follows its message without a change of its own (S0-61): rows that have one are read again.
  private func reread(_ ids: Set<ClientMessageID>) {
    guard let session, let local else { return }
    beginRead()
    Task {
      defer { self.endRead() }
      for id in ids where self.shown.window.contains(id) {
        // A row that is told of meanwhile is read once more: what was read may be the older one.
        for _ in 0..<4 {
          let start = self.told.count
          guard let row = try? await session.openShell().row(id, in: local), let maker = self.maker else {
            break
          }
          let isTold = self.told[start...].contains { change in
            switch change {
            case .inserted(let other), .updated(let other): other.id == id
            case .removed(let other): other == id
            case .elevated: false
            }
          }
          if isTold { continue }
          if self.shown.window.contains(id) { self.shown.apply([.updated(row)]) { maker.message($0) } }
          break
        }
      }
    }
  }

  private func beginRead() { reads += 1 }

  private func endRead() {
    reads -= 1
    if reads == 0 { told = [] }
  }

  // MARK: Mentions

  /// The decision is made and stored: who is not there to hear it does not hear it later (S0-80).
  private func elevate(_ id: ClientMessageID, among changes: [TranscriptChange]) {
    guard let hook = onMentionElevation, let maker else { return }
    for case .inserted(let row) in changes where row.id == id { return hook(maker.message(row)) }
    if let message = shown.window[id] { return hook(message) }
    guard let session, let local else { return }
    Task {
      guard let row = try? await session.openShell().row(id, in: local) else { return }
      hook(maker.message(row))
    }
  }
}

extension Chat.Shown {
  mutating func apply(_ changes: [TranscriptChange], _ make: (Row) -> ChatMessage) {
    for change in changes {
      switch change {
      case .inserted(let row): _ = window.insert(row, make)
      case .updated(let row): _ = window.update(row, make)
      case .removed(let id): window.remove(id)
      case .elevated: break
      }
    }
  }
}
