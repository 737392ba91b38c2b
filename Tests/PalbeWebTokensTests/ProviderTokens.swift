/// An identity provider's key and tokens, made for these tests with OpenSSL; they protect nothing.
enum ProviderTokens {
  /// The modulus of an RSA key of 2,048 bits, the exponent is AQAB.
  static let modulus =
    "p8TCLl8D2ebPeT2sJ7j9BfjNghkYItaYBecFWhnIgV32keNNP3pYh2nJSdlEonMpv1Z1LM28dvtXH0XJaXJ7WTP_cn"
    + "RRzf6_fBnVPircIv_h_8ApIV19r8Y1iwqOi8sjb2YooVS9Txc6SlhlzRodS4ZkMIdyLWBdvNDZkUa3L4bqwGiHP1rw"
    + "Zflu0SJG1LAkIfNp0rqFJFK4kN0hLM0J2v_6pW0pbEAZpuqW_pre9HS8e_i0yG4NFD0d3wVv2F4Ak19EfQ_I8eel72"
    + "-JSvqbSFHd4dTVrZXbzy3mRA_RYGCensup9Aa6UYd9DUDr79Auoh9VrUCncsfvXV4Xg7fxrQ"
  /// RS256: anna, from https://id.example for palbe, valid from 1,800,000,000 for ten minutes, kid rsa-1.
  static let rs256 =
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYS0xIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJzdWIiOiJhbm"
    + "5hIiwiYXVkIjoicGFsYmUiLCJpYXQiOjE4MDAwMDAwMDAsImV4cCI6MTgwMDAwMDYwMH0.SV41mVVgJ41otzOXf0DN"
    + "ELSgvyyTSy1gFMgLNWi-sZlkNT9JiqrtxE122iD_mZljQIlbpJFaipiXr1pBRhz71Wf0emfCHbwk5tpMBJZHeuhRe6"
    + "F0LzvpeT_yXYoNMvHNF3k8fs6gzEEiLUHUuyKptk0_RW2kWKf6BMRk-GJdl3ciryW1sItwmE-DZBtnSb0UcJLV2r62"
    + "BvRBo8gNrStYYHLg1_RmLQkSEfKZ-mZEFn9MPTcccRWGnrGGeig5VQDCS_nYg3bU5zmJxnNn3CF44vE0FeTCF12ux8"
    + "0EwTeBBTGOZc0kEunyQRpNkczSJXwHqtYvz9rZEz-Q3Uf7vS0pUQ"
  /// The same with PS256.
  static let ps256 =
    "eyJhbGciOiJQUzI1NiIsImtpZCI6InJzYS0xIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJzdWIiOiJhbm"
    + "5hIiwiYXVkIjoicGFsYmUiLCJpYXQiOjE4MDAwMDAwMDAsImV4cCI6MTgwMDAwMDYwMH0.bYWbH8ZB3UHUTOoeb2AO"
    + "ebBVNNirbCKEN3koXLACpdnTgIqafdz9_VRYLZ4izjMvHDW6T21bYDTEmxAyo0X2Bjl8WOrmWbVKL7_cbaRa5v5e_5"
    + "kahcjMC4HlWfm3R6J5aDFzhJXHgDhG4Mv4QAL0HhZWdtx4I3LRUb3x7KMW-ObdcArQb0-LXybD1W7m5Cq8Gxre_HTG"
    + "bnIBvPXdAokcWGrO1bCoewT9mu-fyB7t5aLBEh6J0hF5eCFDqCPVe3DzS1V3fB0-xbwatTiCl8I9uArBmCtVFnsIyx"
    + "ss1bJDwzvyth1juqcTH976oNua8RtWIHYS1ZZmMvrW12hUpOXN8w"
  /// PS256 with a salt of 20 bytes, which RFC 7518 §3.5 does not allow.
  static let shortSalt =
    "eyJhbGciOiJQUzI1NiIsImtpZCI6InJzYS0xIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJzdWIiOiJhbm"
    + "5hIiwiYXVkIjoicGFsYmUiLCJpYXQiOjE4MDAwMDAwMDAsImV4cCI6MTgwMDAwMDYwMH0.jYc8PspqvmP8sNBi4HGK"
    + "YcKqhrcJzf2GvQIZZYAAxfGGvoE4q023g9gghq4rMsAaY7yXsd6_TcVMzIo7n_6w8xh4FaGmwQE8DO5QN41NXwiZDH"
    + "Yv33ZfYsmlkyFQrBmtOJ6Z-CSw50QQ5Wz4rJC57l0-veqgQoP0jlUGIeKIQgAF5zAr96QQxP0t9J30BXhXAOrQ9n_C"
    + "HQ2vWVIMKehG-Pf-tk18-T96K-bTMAyGMj0FOLVL75_Tf2_iHvc-2BANFFcXA7sy6JFAcqVzVD8DMClh-r-aDKWgPn"
    + "hq-wfMtYNMlEHiwPEVj9Gh8FhUpEmUXxpa4f7uayJ-tGw2iVoqBQ"

  static var keySet: String {
    #"{"keys":[{"kty":"RSA","kid":"rsa-1","use":"sig","n":""# + modulus + #"","e":"AQAB"}]}"#
  }
}
