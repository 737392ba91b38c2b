import Glibc

/// Takes all descriptors that the process may still open, and gives them back after `body`. For tests that run one at a time.
///
/// - Parameter highest: the highest descriptor that `body` uses.
public func withoutDescriptors(above highest: Int32, _ body: () throws -> Void) rethrows {
  let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  var before = rlimit()
  getrlimit(resource, &before)
  // A few are soon taken; the usual limit is tens of thousands.
  var few = before
  few.rlim_cur = rlim_t(highest + 16)
  setrlimit(resource, &few)
  var taken: [Int32] = []
  while true {
    let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
    if descriptor < 0 { break }
    taken.append(descriptor)
  }
  defer {
    for descriptor in taken { close(descriptor) }
    setrlimit(resource, &before)
  }
  try body()
}
