import Glibc

/// Writes a line at once, also into a pipe; what nobody takes is gone.
public func put(_ line: String, to descriptor: Int32 = STDOUT_FILENO) {
  let bytes = Array((line + "\n").utf8)
  _ = unsafe write(descriptor, bytes, bytes.count)
}
