import PalbeUnits

/// What this device made and the server has not taken, in the order it was made.
struct PendingList: Sendable {
  struct Item: Sendable {
    /// Its record's number.
    var number: UInt64
    var envelope: Envelope
    /// What it does to another row; nil for a row, and for a control.
    var action: MessageAction?
    /// The code of what went wrong; nil while it is tried.
    var failure: String?
    var isHidden = false

    init(number: UInt64, envelope: Envelope, me: UserID) {
      (self.number, self.envelope) = (number, envelope)
      action = MessageAction(envelope.content, by: me, seq: .max)
    }

    /// Whether it shows as a row of its own.
    var isRow: Bool { envelope.content.isSaid }

    var delivery: Delivery { failure.map { .failed(code: $0) } ?? .pending }
  }

  private(set) var items: [Item] = []
  private var numbers: [ClientMessageID: UInt64] = [:]
  private var targets: [MessageRef: [UInt64]] = [:]

  init() {}

  /// Nil for an id that is not among them.
  subscript(id: ClientMessageID) -> Item? { numbers[id].map { items[index(of: $0)] } }

  mutating func append(_ item: Item) {
    items.append(item)
    numbers[item.envelope.id] = item.number
    if let target = item.action?.target { targets[target, default: []].append(item.number) }
  }

  /// Puts another in the place of the one with its number.
  mutating func replace(_ item: Item) { items[index(of: item.number)] = item }

  mutating func remove(_ item: Item) {
    items.remove(at: index(of: item.number))
    numbers[item.envelope.id] = nil
    guard let target = item.action?.target else { return }
    targets[target]?.removeAll { $0 == item.number }
    if targets[target]?.isEmpty == true { targets[target] = nil }
  }

  /// What is about to be done to a row, and shows already (S0-65).
  func actions(on target: MessageRef) -> [MessageAction] {
    guard let numbers = targets[target] else { return [] }
    return numbers.map { items[index(of: $0)] }.filter { $0.failure == nil }.compactMap(\.action)
  }

  private func index(of number: UInt64) -> Int {
    var low = 0
    var high = items.count
    while low < high {
      let middle = (low + high) / 2
      if items[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
