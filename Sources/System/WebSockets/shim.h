#pragma once
#include <libwebsockets.h>
#include <stdlib.h>
#include <string.h>

// Constants that are macros with casts or `ll` suffixes, which Swift cannot import.
static inline size_t palbe_lws_headroom(void) { return LWS_PRE; }
static inline uint64_t palbe_lws_option_no_ipv6(void) { return LWS_SERVER_OPTION_DISABLE_IPV6; }
static inline uint64_t palbe_lws_option_v6_only(void) {
  return LWS_SERVER_OPTION_IPV6_V6ONLY_MODIFY | LWS_SERVER_OPTION_IPV6_V6ONLY_VALUE;
}
static inline uint64_t palbe_lws_option_both_stacks(void) { return LWS_SERVER_OPTION_IPV6_V6ONLY_MODIFY; }
static inline uint64_t palbe_lws_option_must_bind(void) { return LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND; }
static inline uint64_t palbe_lws_option_tls(void) { return LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT; }
static inline uint64_t palbe_lws_option_no_system_roots(void) { return LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS; }

// Ends the connection at the library's next turn, whatever its peer does. Only on the service thread.
static inline void palbe_lws_kill(struct lws *connection) {
  lws_set_timeout(connection, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_ASYNC);
}

// Ends the connection when `seconds` pass before the next such call.
static inline void palbe_lws_kill_after(struct lws *connection, int seconds) {
  lws_set_timeout(connection, PENDING_TIMEOUT_USER_REASON_BASE, seconds);
}

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
