/// How the groups and names of records are called in a file. One owner at a time.
package protocol RecordNaming {
  /// Where the records of a group lie; nil: of the client itself.
  func scope(of group: [UInt8]?) -> [UInt8]
  /// What the scopes of all groups begin with, and no other's.
  var groupScopes: [UInt8] { get }
  /// The group of a scope; nil when it is none that `scope(of:)` gave.
  func group(of scope: [UInt8]) -> [UInt8]?
  /// What a name is called in a scope. A name's beginning must become the beginning of what it is called.
  func inFile(_ name: [UInt8], in scope: [UInt8]) -> [UInt8]
  /// Names from what they are called, in the same order.
  func names(_ stored: [[UInt8]], in scope: [UInt8]) -> [[UInt8]]
}

extension RecordNaming {
  package func inFile(_ name: [UInt8], in scope: [UInt8]) -> [UInt8] { name }
  package func names(_ stored: [[UInt8]], in scope: [UInt8]) -> [[UInt8]] { stored }
}
