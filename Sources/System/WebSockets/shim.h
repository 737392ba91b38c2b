#pragma once
#include <errno.h>
#include <libwebsockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "tls.h"

// Constants that are macros with casts or `ll` suffixes, which Swift cannot import.
static inline size_t palbe_lws_headroom(void) { return LWS_PRE; }
static inline int palbe_lws_no_listener(void) { return CONTEXT_PORT_NO_LISTEN_SERVER; }
static inline uint64_t palbe_lws_option_fallback(void) {
  return LWS_SERVER_OPTION_FALLBACK_TO_APPLY_LISTEN_ACCEPT_CONFIG;
}
static inline uint64_t palbe_lws_option_tls(void) { return LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT; }
static inline uint64_t palbe_lws_option_tls_server(void) {
  return LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_CREATE_VHOST_SSL_CTX;
}
static inline uint64_t palbe_lws_option_no_system_roots(void) { return LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS; }

// Calls back with LWS_CALLBACK_RAW_RX_FILE while there is something to read. The library closes the descriptor at its end; NULL when
// it did not take it.
static inline struct lws *palbe_lws_watch(struct lws_vhost *vhost, int descriptor) {
  lws_sock_file_fd_type file = {.filefd = descriptor};
  return lws_adopt_descriptor_vhost(vhost, LWS_ADOPT_RAW_FILE_DESC, file, NULL, NULL);
}

// Ends the connection at the library's next turn, whatever its peer does. Only on the service thread.
static inline void palbe_lws_kill(struct lws *connection) {
  lws_set_timeout(connection, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_ASYNC);
}

// Ends the connection when `seconds` pass before the next such call.
static inline void palbe_lws_kill_after(struct lws *connection, int seconds) {
  lws_set_timeout(connection, PENDING_TIMEOUT_USER_REASON_BASE, seconds);
}

// Forgets the time-out that was set.
static inline void palbe_lws_keep(struct lws *connection) { lws_set_timeout(connection, NO_PENDING_TIMEOUT, 0); }

// Ends the connection when no piece of a request's body comes for `seconds`.
static inline void palbe_lws_await_body(struct lws *connection, int seconds) {
  lws_set_timeout(connection, PENDING_TIMEOUT_HTTP_CONTENT, seconds);
}

// Calls back with LWS_CALLBACK_TIMER on this connection; a later call moves it, -1 cancels it.
static inline void palbe_lws_call_after(struct lws *connection, int64_t microseconds) {
  lws_set_timer_usecs(connection, (lws_usec_t)microseconds);
}

// How many bytes of a TCP connection the process has read, or -1. The kernel tells what came and what is unread one after
// the other: while bytes arrive in between, it is asked again. Where that never ends, the count is too large with
// `at_least`, else too small.
static inline int64_t palbe_tcp_read_count(int descriptor, int at_least) {
  // Linux's struct tcp_info up to tcpi_bytes_received, which the C library's header lacks.
  uint64_t info[17] = {0};
  int before = 0, after = 0;
  for (int attempt = 0; attempt < 64; attempt++) {
    socklen_t length = sizeof info;
    if (ioctl(descriptor, FIONREAD, &before) != 0) return -1;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, info, &length) != 0 || length < sizeof info) return -1;
    if (ioctl(descriptor, FIONREAD, &after) != 0) return -1;
    if (before == after) break;
  }
  return (int64_t)info[16] - (at_least ? before : after);
}

// Whether a TCP connection's other end is there, as far as is known.
static inline int palbe_tcp_is_open(int descriptor) {
  char byte;
  ssize_t count = recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

// Whether a callback that tells of the end of a binding tells of the end of the connection.
static inline int palbe_lws_is_closing(const void *reason) {
  return reason && strcmp((const char *)reason, "__lws_close_free_wsi") == 0;
}

// Writes to a connection that the library is about to close, past its buffers, and reads away what has come: closing over
// unread bytes is a reset, with which what was written may be lost.
static inline void palbe_lws_say(struct lws *connection, const uint8_t *bytes, size_t count) {
  int descriptor = lws_get_socket_fd(connection);
  SSL *ssl = lws_get_ssl(connection);
  if (ssl) {
    if (!SSL_is_init_finished(ssl) || SSL_get_shutdown(ssl)) return;
    SSL_write(ssl, bytes, (int)count);
    ERR_clear_error();
  } else {
    send(descriptor, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  char unread[4096];
  for (int turn = 0; turn < 64 && recv(descriptor, unread, sizeof unread, MSG_DONTWAIT) > 0; turn++) {
  }
}

// Whether some of what was written waits for the socket.
static inline int palbe_lws_has_unsent(struct lws *connection) { return lws_partial_buffered(connection); }

// The library's name of a header, "host:", or NULL.
static inline const char *palbe_lws_header_name(int token) {
  return (const char *)lws_token_to_string((enum lws_token_indexes)token);
}

// Starts a TCP connection whose bytes the library leaves alone (`target` NULL), or a WebSocket over TLS.
static inline struct lws *palbe_lws_connect(struct lws_context *context, const char *host, int port,
                                            const char *target, const char *authority, const char *protocol,
                                            void *identity) {
  struct lws_client_connect_info info;
  memset(&info, 0, sizeof info);
  info.context = context;
  info.address = host;
  info.port = port;
  info.host = target ? authority : host;
  info.path = target ? target : "/";
  info.method = target ? NULL : "RAW";
  info.ssl_connection = target ? LCCSCF_USE_SSL : 0;
  info.ietf_version_or_minus_one = -1;
  info.local_protocol_name = protocol;
  info.opaque_user_data = identity;
  return lws_client_connect_via_info(&info);
}
