// The MLS engine over standard input and output: one JSON object a line in, one out, until the input ends.
import Foundation
import PalbeMLSInterop
import PalbeUnits
import PalbeWire

let usage = "usage: mls-interop [--storage FILE]"
let help = """
  mls-interop: the MLS engine over standard input and output, for other implementations to be run against

  \(usage)

  One JSON object a line in, one out, until the input ends. Bytes are hexadecimal of complete wire structures.

    --storage FILE  keeps clients and groups in a file, from which `load` takes them in a later run
                    (else in a temporary one that goes with the process)
    --help          this text
    --version       the version

  methods (a group or client is a name of your choice; ? is optional):
    hello                                                      engine, suites, methods
    create_client   client, suite?, identity? (hex) or name?   signature_public_key, identity
    key_package     client, last_resort?                       message
    set_psk         client, psk_id, psk
    create_group    client, group, group_id?                   group, context
    join            client, group, welcome, ratchet_tree?      group, context
    external_join   client, group, group_info                  group, commit, context
    add             group, key_packages, merge?, force_path?   commit, welcome, ratchet_tree?, context
    remove          group, members, merge?                     commit, welcome?, context
    update          group, merge?                              commit, context
    commit          group, merge?, psk_ids?, force_path?       commit, welcome?, context
    propose_add, propose_remove, propose_update  group, …      proposals
    merge, clear_pending                         group         context
    process         group, message                             kind, sender, data?, effect?, context
    encrypt         group, plaintext, aad?                     message
    decrypt         group, message                             plaintext, sender
    export_secret   group, label or label_hex, context?, length  secret
    group_info      group, ratchet_tree?                       group_info
    epoch, export_tree, roster  group                          context, ratchet_tree, members
    save            group                                      context
    load            client, group_id, group                    context
  A member is a local client's name, or {"leaf": n}, {"identity": hex} or {"key_package": hex}.

  example:
    {"id": 1, "method": "create_client", "params": {"client": "anna"}}
    {"id": 2, "method": "create_group", "params": {"client": "anna", "group": "g"}}
    {"id": 3, "method": "export_secret", "params": {"group": "g", "label": "test", "length": 32}}

  """

let random = RandomSource {
  var system = SystemRandomNumberGenerator()
  return system.next()
}

func put(_ text: String, to handle: FileHandle) { handle.write(Data((text + "\n").utf8)) }

var storage: String?
var arguments = CommandLine.arguments.dropFirst()
while let argument = arguments.popFirst() {
  switch argument {
  case "--help", "-h":
    put(help, to: .standardOutput)
    exit(0)
  case "--version":
    put("mls-interop \(Release.version)", to: .standardOutput)
    exit(0)
  case "--storage" where !arguments.isEmpty: storage = arguments.popFirst()
  default:
    put(
      "mls-interop: unknown or incomplete option '\(printable(argument))'; \(usage)", to: .standardError)
    exit(2)
  }
}
// What is stored holds private keys.
umask(0o077)
do {
  // In a scope of its own, so that a temporary file goes with it.
  let session = InteropSession(random: random, storage: storage) {
    UInt64(max(0, Date().timeIntervalSince1970))
  }
  while let line = readLine() { put(session.answer(line), to: .standardOutput) }
}
