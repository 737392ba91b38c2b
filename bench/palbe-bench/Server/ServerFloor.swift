import PalbeBackendCore
import PalbeEventLoop
import PalbeSQLStore
import PalbeUnits

/// A bare loop over SQLite that writes and reads the rows of the server's tables, with nothing decided: the statements are
/// prepared, the small keys known, every transaction as durable as the server's.
final class ServerFloor {
  private let connection: SQLConnection
  private var queueID: Int64
  /// By group: its key, its founder's device, its head and how many of its messages count.
  private var groups: [(key: Int64, sender: Int64, head: Int64, counted: Int64)] = []
  private var devices: [Int64] = []

  init(path: String, world: BenchWorld) throws {
    var settings = SQLConnection.Settings()
    settings.journal = .writeAhead
    connection = try SQLConnection(path: path, settings: settings)
    try connection.execute("PRAGMA cache_size = -32768")
    queueID = try connection.statement("SELECT last_queue_id FROM state").first { $0.integer(0) } ?? 0
    let group = try connection.statement("SELECT key, head, counted FROM grp WHERE id = ?")
    let device = try connection.statement("SELECT key FROM device WHERE id = ?")
    func key(_ caller: Caller) throws -> Int64 {
      device.bind(1, copying: caller.device?.bytes ?? [])
      return try device.first { $0.integer(0) } ?? 0
    }
    for known in world.groups {
      group.bind(1, copying: known.id.bytes)
      guard let row = try group.first({ ($0.integer(0), $0.integer(1), $0.integer(2)) }) else {
        throw ServerBenchFailure("no group in the copy")
      }
      groups.append((row.0, try key(known.members[0]), row.1, row.2))
    }
    devices = try world.devices.map { try key($0) }
  }

  /// Seconds for messages of the groups in turn, `width` a transaction.
  func send(_ messages: [(id: [UInt8], blob: [UInt8])], width: Int) throws -> Double {
    let start = nanoseconds()
    let log = try connection.statement(
      """
      INSERT INTO log (id, epoch, generation, kind, sender, client_id, at, counted, blob)
      VALUES (?, 1, 0, 1, ?, ?, ?, ?, ?)
      """)
    let update = try connection.statement(
      "UPDATE grp SET epoch = 1, generation = 0, head = ?, counted = ?, last_proposal = 0 WHERE key = ?")
    let queue = try connection.statement(
      """
      INSERT INTO queue (device, id, kind, grp, reference, wakes, control)
      SELECT device, ?, 1, ?, ?, 1, NULL FROM leaf WHERE grp = ? AND live = 1 AND device <> ?
      """)
    let state = try connection.statement("UPDATE state SET last_queue_id = ?")
    for first in stride(from: 0, to: messages.count, by: width) {
      try connection.begin()
      let now = WallClock.unixNanoseconds() / 1_000
      for index in first..<min(messages.count, first + width) {
        let place = index % groups.count
        groups[place].head += 1
        groups[place].counted += 1
        let group = groups[place]
        log.bind(1, group.key << 32 | group.head)
        log.bind(2, group.sender)
        log.bind(3, copying: messages[index].id)
        log.bind(4, now)
        log.bind(5, group.counted)
        let blob = messages[index].blob
        try log.withBound(6, blob.span) { () throws(SQLError) in try log.run() }
        update.bind(1, group.head)
        update.bind(2, group.counted)
        update.bind(3, group.key)
        try update.run()
        queueID = max(queueID + 1, now)
        queue.bind(1, queueID)
        queue.bind(2, group.key)
        queue.bind(3, group.head)
        queue.bind(4, group.key)
        queue.bind(5, group.sender)
        try queue.run()
      }
      state.bind(1, queueID)
      try state.run()
      try connection.commit()
    }
    return Double(nanoseconds() - start) / 1e9
  }

  /// Seconds to read all rows of the queues by pages, and to remove each page: all devices' pages in one transaction, then all
  /// their removals in another. Returns the rows too.
  func drain(page: Int) throws -> (seconds: Double, rows: Int) {
    let start = nanoseconds()
    var total = 0
    let select = try connection.statement(
      """
      SELECT queue.id, queue.kind, grp.id, control, welcome.blob, log.id & 0xffffffff, log.epoch, log.generation,
        log.kind, sender.id, client_id, at, log.blob
      FROM queue LEFT JOIN grp ON grp.key = queue.grp
      LEFT JOIN log ON queue.kind = 1 AND log.id = queue.grp << 32 | queue.reference
      LEFT JOIN device sender ON sender.key = log.sender
      LEFT JOIN welcome ON queue.kind = 2 AND welcome.key = queue.reference
      WHERE queue.device = ? AND queue.id > 0 ORDER BY queue.id LIMIT ?
      """)
    let delete = try connection.statement("DELETE FROM queue WHERE device = ? AND id <= ?")
    let raise = try connection.statement(
      """
      INSERT INTO delivered (grp, device, sequence) SELECT key, ?, head FROM grp WHERE id = ?
      ON CONFLICT (grp, device) DO UPDATE SET sequence = excluded.sequence WHERE excluded.sequence > sequence
      """)
    while true {
      var last: [Int64: (id: Int64, groups: Set<[UInt8]>)] = [:]
      try connection.begin()
      for device in devices {
        select.bind(1, device)
        select.bind(2, Int64(page))
        for row in try select.all({ ($0.integer(0), $0.bytes(2), $0.bytes(12)) }) {
          total += 1
          last[device, default: (0, [])].id = row.0
          last[device, default: (0, [])].groups.insert(row.1)
        }
      }
      try connection.commit()
      guard !last.isEmpty else { break }
      try connection.begin()
      for (device, read) in last {
        delete.bind(1, device)
        delete.bind(2, read.id)
        try delete.run()
        for group in read.groups {
          raise.bind(1, device)
          raise.bind(2, copying: group)
          try raise.run()
        }
      }
      try connection.commit()
    }
    return (Double(nanoseconds() - start) / 1e9, total)
  }
}
