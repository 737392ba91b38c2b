import CPalbeLinux
import Glibc

/// The system call that failed.
public enum SystemCall: UInt8, Sendable {
  case accept, bind, epollControl, epollCreate, epollWait, eventfd, getifaddrs, getsockname, mmap
  case pthreadCreate, read, recvmmsg, sendmmsg, setrlimit, setsockopt, signalfd, sigmask, socket
}

/// A system call's refusal: which call, and its `errno`.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The call that failed.
  public var call: SystemCall
  /// The `errno` it left.
  public var code: Int32

  /// Takes the current `errno`, unless a code is given.
  public init(_ call: SystemCall, code: Int32 = errno) {
    self.call = call
    self.code = code
  }

  /// "bind: Address already in use".
  public var description: String { "\(call): \(String(cString: strerror(code)))" }
}

/// Why a socket could not be opened.
public enum SocketError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Another socket listens there.
  case portInUse(UInt16)
  /// The host has no such address.
  case addressNotAvailable
  /// The port needs a privilege that the process lacks.
  case permissionDenied(UInt16)
  /// Anything else.
  case system(SystemError)

  init(_ call: SystemCall, port: UInt16, code: Int32 = errno) {
    self =
      switch code {
      case EADDRINUSE: .portInUse(port)
      case EADDRNOTAVAIL: .addressNotAvailable
      case EACCES, EPERM: .permissionDenied(port)
      default: .system(SystemError(call, code: code))
      }
  }

  /// The host knows no IPv6.
  public var isFamilyMissing: Bool {
    if case .system(let error) = self { error.code == EAFNOSUPPORT } else { self == .addressNotAvailable }
  }

  /// One line for a person.
  public var description: String {
    switch self {
    case .portInUse(let port): "port \(port) is in use"
    case .addressNotAvailable: "the host has no such address"
    case .permissionDenied(let port): "no permission to use port \(port)"
    case .system(let error): error.description
    }
  }
}
