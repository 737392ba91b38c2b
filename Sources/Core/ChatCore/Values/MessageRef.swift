import PalbeUnits

/// What replies, reactions, edits and deletions name: the id that a message's sender gave it.
package typealias MessageRef = ClientMessageID
