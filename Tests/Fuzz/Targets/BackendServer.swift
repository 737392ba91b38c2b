import PalbeAccountsCore
import PalbeBackendCore
import PalbeCrypto
import PalbeUnits

@testable import PalbeBackendServer

extension FuzzTarget {
  /// Frames that a client sends on the delivery server's socket.
  static let realtimeFrame = FuzzTarget(
    name: "realtime-frame",
    run: { bytes in
      do throws(RealtimeFrame.Refusal) {
        let frame = try RealtimeFrame(String(decoding: bytes, as: UTF8.self))
        guard case .subscribe(let topic) = frame.wish else { return }
        demand(TopicName(text: topic.text) == topic, "a topic is not read as it is written")
      } catch {
        _ = RealtimeText.error(error.id, error.error)
      }
    })

  /// JSON bodies of the delivery server's routes, read by their shapes: the first byte chooses the route.
  static let routeBody = FuzzTarget(
    name: "route-body",
    run: { bytes in
      let route = routes[Int(bytes.first ?? 0) % routes.count]
      let record: Shape.Record
      switch route.body {
      case .none: record = Shape.Record(route.query)
      case .json(let shape), .jsonOrBytes(let shape, _): record = shape
      }
      guard let object = try? record.read(Array(bytes.dropFirst()), limit: route.bodyByteCount),
        case .backend(let ask, _) = route.service
      else { return }
      let id = "_01900000-0000-7000-8000-000000000000"
      let path: [String: JSONValue] = [
        "group": .text("grp" + id), "user": .text("usr" + id), "device": .text("mdv" + id),
        "blob": .text("blb" + id),
      ]
      _ = try? ask(RouteInput(caller: nil, path: JSONObject(path), query: object, body: object))
    })

  private static let routes = RouteTable(
    devices: DeviceTokens(key: SymmetricKey(copying: [UInt8](repeating: 1, count: 32)))
  ).routes
}
