#pragma once
#include <sqlite3.h>

// SQLITE_TRANSIENT is a cast that Swift does not see: SQLite makes its own copy.
static inline int palbe_sqlite_bind_blob_copying(sqlite3_stmt *_Nonnull statement, int index,
                                                 const void *_Nullable bytes, int count) {
  return sqlite3_bind_blob(statement, index, bytes, count, SQLITE_TRANSIENT);
}

static inline int palbe_sqlite_bind_text_copying(sqlite3_stmt *_Nonnull statement, int index,
                                                 const char *_Nonnull text) {
  return sqlite3_bind_text(statement, index, text, -1, SQLITE_TRANSIENT);
}
