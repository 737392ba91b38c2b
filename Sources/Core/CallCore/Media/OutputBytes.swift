import PalbeRTP
import PalbeUnits
import PalbeWire

extension MutableSpan where Element == UInt8 {
  /// Lets `body` append from the first byte on; returns how many bytes it wrote.
  @_lifetime(self: copy self)
  mutating func withOutput(_ body: (inout OutputSpan<UInt8>) -> Void) -> Int {
    // The bytes are initialised before and plain values, and the span does not outlive the closure.
    unsafe withUnsafeMutableBufferPointer { buffer in
      var output = unsafe OutputSpan(buffer: buffer, initializedCount: 0)
      body(&output)
      return unsafe output.finalize(for: buffer)
    }
  }
}
