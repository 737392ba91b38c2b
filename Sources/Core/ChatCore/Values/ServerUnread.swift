/// The server's count of what is unread: an upper bound, for it cannot tell a reaction from a text (section 3 #25).
package struct ServerUnread: Hashable, Sendable {
  package var groupMaxSeq: Int64
  package var lastReadSeq: Int64
  package var deliveredSeq: Int64
  package var unreadCount: Int64

  package init(groupMaxSeq: Int64, lastReadSeq: Int64, deliveredSeq: Int64, unreadCount: Int64) {
    (self.groupMaxSeq, self.lastReadSeq) = (groupMaxSeq, lastReadSeq)
    (self.deliveredSeq, self.unreadCount) = (deliveredSeq, unreadCount)
  }
}
