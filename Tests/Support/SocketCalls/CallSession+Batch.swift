public import PalbeCallCore
public import PalbeEventLoop
public import PalbeUnits

extension CallSession {
  /// Takes a datagram of a batch, decrypted where it lies.
  public mutating func receive(_ index: Int, of batch: inout ReceiveBatch, at now: Instant) {
    let count = batch.byteCount(index)
    let source = batch.source(index)
    var slot = batch.slot(index)
    receive(&slot, count: count, from: source, at: now)
  }
}
