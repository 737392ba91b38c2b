import PalbeEventLoop

extension WebhookSender {
  /// Nil without URLs.
  static func make(_ configuration: SFUServer.Configuration) throws(SFUServerError)
    -> WebhookSender?
  {
    let webhooks = configuration.webhooks
    guard !webhooks.urls.isEmpty else { return nil }
    var urls: [WebhookURL] = []
    for text in webhooks.urls {
      guard let url = WebhookURL(text) else { throw .webhooks("'\(text)' is no http or https address") }
      urls.append(url)
    }
    guard let signer = WebhookSigner(configuration) else {
      throw .webhooks("there is no API key '\(webhooks.keyName ?? "")' to sign with")
    }
    let settings = Settings(urls: urls, signer: signer, authorities: webhooks.authoritiesPath)
    do throws(SystemError) {
      return try WebhookSender(settings, log: configuration.log)
    } catch {
      throw .system(error.description)
    }
  }
}

extension WebhookSigner {
  /// The key that is named, or the first by name; nil when there is none.
  init?(_ configuration: SFUServer.Configuration) {
    guard let name = configuration.webhooks.keyName ?? configuration.keys.keys.min(),
      let secret = configuration.keys[name]
    else { return nil }
    self.init(keyName: name, secret: secret)
  }
}
