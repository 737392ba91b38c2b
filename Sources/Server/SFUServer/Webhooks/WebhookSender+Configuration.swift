import PalbeEventLoop

extension WebhookSender {
  /// Tells nobody as long as there are no URLs; a reload may bring some.
  static func make(_ configuration: SFUServer.Configuration) throws(SFUServerError) -> WebhookSender {
    let settings = Settings(
      target: try WebhookTarget(configuration), authorities: configuration.webhooks.authoritiesPath)
    do throws(SystemError) {
      return try WebhookSender(settings, log: configuration.log)
    } catch {
      throw .system(error.description)
    }
  }
}

extension WebhookTarget {
  /// Nil without URLs. Signed by the key that is named, or the first by name.
  init?(_ configuration: SFUServer.Configuration) throws(SFUServerError) {
    let webhooks = configuration.webhooks
    guard !webhooks.urls.isEmpty else { return nil }
    urls = []
    for text in webhooks.urls {
      guard let url = WebhookURL(text) else { throw .webhooks("'\(text)' is no http or https address") }
      if !urls.contains(url) { urls.append(url) }
    }
    guard let name = webhooks.keyName ?? configuration.keys.keys.min(), let secret = configuration.keys[name]
    else { throw .webhooks("there is no API key '\(webhooks.keyName ?? "")' to sign with") }
    signer = WebhookSigner(keyName: name, secret: secret)
  }
}
