/// The tables, by version: step i leads from version i to i + 1. Released steps never change; a file of each released
/// version lies in the tests.
///
/// Users, devices and groups have a small `key` besides their id, by which the other tables name them. Content is in columns
/// named `blob`, `group_info`, `tree` and `name`, all of them ciphertext or public keys.
enum Schema {
  static let steps = [version1]

  private static let version1 = """
    CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), last_queue_id INTEGER NOT NULL);
    INSERT INTO state VALUES (1, 0);

    CREATE TABLE user (
      key INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, presence INTEGER NOT NULL, receipts INTEGER NOT NULL);
    CREATE TABLE device (
      key INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, user INTEGER NOT NULL, signature_key BLOB NOT NULL,
      platform INTEGER NOT NULL, created INTEGER NOT NULL, revoked INTEGER, woken INTEGER NOT NULL);
    CREATE INDEX device_user ON device (user);
    CREATE TABLE push_token (
      device INTEGER NOT NULL, platform INTEGER NOT NULL, token BLOB NOT NULL,
      PRIMARY KEY (device, platform)) WITHOUT ROWID;

    CREATE TABLE key_package (
      key INTEGER PRIMARY KEY, device INTEGER NOT NULL, reference BLOB NOT NULL UNIQUE, expires INTEGER NOT NULL,
      last_resort INTEGER NOT NULL, used INTEGER NOT NULL, blob BLOB NOT NULL);
    CREATE INDEX key_package_unused ON key_package (device, last_resort, key) WHERE used = 0;
    CREATE INDEX key_package_expires ON key_package (expires);

    CREATE TABLE grp (
      key INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, mls_id BLOB NOT NULL UNIQUE, kind INTEGER NOT NULL,
      direct_key BLOB UNIQUE, epoch INTEGER NOT NULL, generation INTEGER NOT NULL, head INTEGER NOT NULL,
      counted INTEGER NOT NULL, last_proposal INTEGER NOT NULL, created_by INTEGER NOT NULL,
      created INTEGER NOT NULL);
    CREATE TABLE group_state (
      grp INTEGER PRIMARY KEY, name_epoch INTEGER, name BLOB, group_info BLOB NOT NULL, tree BLOB);
    CREATE TABLE member (
      grp INTEGER NOT NULL, user INTEGER NOT NULL, role INTEGER NOT NULL, joined INTEGER NOT NULL, left_at INTEGER,
      scope INTEGER NOT NULL, read INTEGER NOT NULL, read_counted INTEGER NOT NULL,
      PRIMARY KEY (grp, user)) WITHOUT ROWID;
    CREATE INDEX member_user ON member (user, grp) WHERE left_at IS NULL;
    CREATE TABLE leaf (
      grp INTEGER NOT NULL, device INTEGER NOT NULL, leaf_index INTEGER NOT NULL, added_epoch INTEGER NOT NULL,
      live INTEGER NOT NULL, PRIMARY KEY (grp, device)) WITHOUT ROWID;
    CREATE INDEX leaf_device ON leaf (device);

    -- id = group's key << 32 | sequence
    CREATE TABLE log (
      id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, generation INTEGER NOT NULL, kind INTEGER NOT NULL,
      sender INTEGER NOT NULL, client_id BLOB, at INTEGER NOT NULL, counted INTEGER NOT NULL, blob BLOB NOT NULL);
    CREATE UNIQUE INDEX log_client_id ON log (sender, client_id) WHERE client_id IS NOT NULL;
    -- One commit for an epoch: who inserts first wins.
    CREATE TABLE commit_key (
      grp INTEGER NOT NULL, generation INTEGER NOT NULL, epoch INTEGER NOT NULL, sequence INTEGER NOT NULL,
      PRIMARY KEY (grp, generation, epoch)) WITHOUT ROWID;

    CREATE TABLE welcome (key INTEGER PRIMARY KEY AUTOINCREMENT, readers INTEGER NOT NULL, blob BLOB NOT NULL);
    -- kind 1 message (reference: sequence), 2 welcome (reference: its key), 3 control
    CREATE TABLE queue (
      device INTEGER NOT NULL, id INTEGER NOT NULL, kind INTEGER NOT NULL, grp INTEGER NOT NULL,
      reference INTEGER NOT NULL, wakes INTEGER NOT NULL, control BLOB,
      PRIMARY KEY (device, id)) WITHOUT ROWID;
    CREATE TABLE delivered (
      grp INTEGER NOT NULL, device INTEGER NOT NULL, sequence INTEGER NOT NULL,
      PRIMARY KEY (grp, device)) WITHOUT ROWID;

    CREATE TABLE blob (
      id BLOB PRIMARY KEY, grp INTEGER NOT NULL, uploader INTEGER NOT NULL, size INTEGER NOT NULL,
      state INTEGER NOT NULL, expires INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX blob_expires ON blob (expires);
    CREATE TABLE idempotency (
      owner BLOB NOT NULL, key BLOB NOT NULL, digest BLOB NOT NULL, expires INTEGER NOT NULL,
      response BLOB NOT NULL, UNIQUE (owner, key));
    CREATE INDEX idempotency_expires ON idempotency (expires);
    """
}
