/// Self-signed certificates for localhost and 127.0.0.1, made for these tests with
/// `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes`; they protect nothing.
public enum TestCertificates {
  /// One certificate.
  public static let first = """
    -----BEGIN CERTIFICATE-----
    MIIBoTCCAUegAwIBAgIULYrTNe3ftUyLsYBpOV97x1Kc6u4wCgYIKoZIzj0EAwIw
    FzEVMBMGA1UEAwwMcGFsYmUgdGVzdCAxMCAXDTI2MTEzMDExMDQxOVoYDzIxMjYx
    MTA2MTEwNDE5WjAXMRUwEwYDVQQDDAxwYWxiZSB0ZXN0IDEwWTATBgcqhkjOPQIB
    BggqhkjOPQMBBwNCAAT+/5wmQ4AUcwwAqFOPBrRgAeP9N5HHWgrhaXE1jo8KULub
    Kb9UbdD//I5jC+u57rF+45HIgBdIA0m5NWeWGTseo28wbTAdBgNVHQ4EFgQUkKd1
    4hXJeSDTRAUWYYbgHJeOW50wHwYDVR0jBBgwFoAUkKd14hXJeSDTRAUWYYbgHJeO
    W50wDwYDVR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEw
    CgYIKoZIzj0EAwIDSAAwRQIgPg8uGcv7Kdo0cPMFcTn2qd58kFbYk8Xuu1exdixA
    2ocCIQDWoNOlB6rjJtwE/1l44o9zw2P4nT/3HqF5N0/Gvek6jg==
    -----END CERTIFICATE-----

    """
  /// The key of `first`.
  public static let firstKey = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgGalMEeDeZIHeFvDX
    7JsPX9aMjpvlN+bQkp6SjxHbZYWhRANCAAT+/5wmQ4AUcwwAqFOPBrRgAeP9N5HH
    WgrhaXE1jo8KULubKb9UbdD//I5jC+u57rF+45HIgBdIA0m5NWeWGTse
    -----END PRIVATE KEY-----

    """
  /// Another certificate.
  public static let second = """
    -----BEGIN CERTIFICATE-----
    MIIBoTCCAUegAwIBAgIUDK7xZ7Wd4eKifijtSp+OmMBveDAwCgYIKoZIzj0EAwIw
    FzEVMBMGA1UEAwwMcGFsYmUgdGVzdCAyMCAXDTI2MTEzMDExMDQxOVoYDzIxMjYx
    MTA2MTEwNDE5WjAXMRUwEwYDVQQDDAxwYWxiZSB0ZXN0IDIwWTATBgcqhkjOPQIB
    BggqhkjOPQMBBwNCAAQLdKpJt15BbRiipg0VMMqo7kIAqBV2NJENm6iokIeKUFHK
    PyjWwhz+wx7tiePCqc1bfbUzvsPRGzp1i7Y1z5NQo28wbTAdBgNVHQ4EFgQUbS+o
    AZ9WNaMmVnbJ0x5+zOlxIcYwHwYDVR0jBBgwFoAUbS+oAZ9WNaMmVnbJ0x5+zOlx
    IcYwDwYDVR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEw
    CgYIKoZIzj0EAwIDSAAwRQIhAMk7BjEw/Va82Ro4t334Ltr8lEjdddE3HmIfaSNQ
    gDeCAiA7NzQvvJ54hHy5r9I43HYr64uDDU23qsyxIiUXWUaQSQ==
    -----END CERTIFICATE-----

    """
  /// The key of `second`.
  public static let secondKey = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg8JeAFERJlcP9M5D8
    lUeVAqdk8cYBaMa9ARTrndOQyGChRANCAAQLdKpJt15BbRiipg0VMMqo7kIAqBV2
    NJENm6iokIeKUFHKPyjWwhz+wx7tiePCqc1bfbUzvsPRGzp1i7Y1z5NQ
    -----END PRIVATE KEY-----

    """
  /// `firstKey` behind a passphrase.
  public static let encryptedKey = """
    -----BEGIN EC PRIVATE KEY-----
    Proc-Type: 4,ENCRYPTED
    DEK-Info: AES-128-CBC,D986666AC524507AE0C2213B0B135F2C

    HMswHiIeHQhxON+HOe0sUI75xWzMz0MvcRaRbH3UZFyOmKlD2J7xj5HcqzDxFBYy
    wLAyEAdZKkHj/iZ/IrqQRBy/HfYzEwHWM1TXO3ukR0wz+ASXWW/d9znDSaV3rv5G
    N9CqHneu9FeV1amXUITEwBK+4p1FSECX7BAXeBEgSxU=
    -----END EC PRIVATE KEY-----

    """
  /// When `first` ends.
  public static let firstExpiry: Int64 = 4949_636_659
}
