/// The tables of accounts, by version: step i leads from version i to i + 1. Released steps never change; a file of each released
/// version lies in the tests.
///
/// E-mails and names of identities are bytes, because a text of SQLite's ends at a zero.
enum AccountSchema {
  static let steps = [version1]

  private static let version1 = """
    CREATE TABLE account (
      user BLOB PRIMARY KEY, email BLOB UNIQUE, salt BLOB, hash BLOB, n INTEGER, r INTEGER, p INTEGER,
      created INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE identity (
      issuer BLOB NOT NULL, subject BLOB NOT NULL, user BLOB NOT NULL, PRIMARY KEY (issuer, subject)) WITHOUT ROWID;
    CREATE TABLE session (
      id BLOB PRIMARY KEY, user BLOB NOT NULL, created INTEGER NOT NULL, used INTEGER NOT NULL,
      expires INTEGER NOT NULL, generation INTEGER NOT NULL, current BLOB NOT NULL, previous BLOB, replaced INTEGER,
      cover BLOB, agent BLOB NOT NULL, device BLOB) WITHOUT ROWID;
    CREATE INDEX session_user ON session (user);
    CREATE INDEX session_device ON session (device) WHERE device IS NOT NULL;
    CREATE INDEX session_expires ON session (expires);
    CREATE TABLE refused (
      session BLOB PRIMARY KEY, until INTEGER NOT NULL, device_revoked INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX refused_until ON refused (until);
    CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), last_dropped INTEGER);
    INSERT INTO state VALUES (1, NULL);
    """
}
