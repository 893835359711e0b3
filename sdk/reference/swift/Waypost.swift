// Waypost for an iOS app: registers the device, reports receipts, lists and marks the feed, follows it live.
//
// A reference to copy: Foundation alone, Swift 5.7 or newer, iOS 15 or newer.

import Foundation

/// What an app keeps between its starts: UserDefaults there, a dictionary in a test.
public protocol Kept: Sendable {
    func get(_ name: String) -> Data?
    func put(_ name: String, _ value: Data?)
}

/// A refusal. The code is for logs, not for people.
public struct Refused: Error {
    public let status: Int
    public let code: String

    /// Whether the same call may succeed later.
    public var isPassing: Bool { status == 429 || status >= 500 }
}

/// What happened to a notification on this device.
public enum Event: String, Codable, Sendable {
    case delivered, displayed, opened, dismissed, action
}

/// An entry of the feed; the API has more fields than are read here.
public struct Entry: Decodable, Sendable {
    public let id: String
    public let type: String?
    public let title: String?
    public let body: String?
    public let image: String?
    public let link: String?
    public let tags: [String]
    public let shown_at: String
    public let seen_at: String?
    public let read_at: String?
}

/// A page of the feed, newest first; `next` begins the following one.
public struct FeedPage: Decodable, Sendable {
    public let items: [Entry]
    public let unread: Int
    public let unseen: Int
    public let next: String?
}

/// A message of the live connection: `type` is hello, entry, marked, fetch or reconnect, or one to pass over.
public struct LiveMessage: Decodable, Sendable {
    public let type: String
    public let cursor: String?
    public let entry: Entry?
    public let mark: String?
    public let ids: [String]?
    public let unread: Int?
    public let unseen: Int?
    public let within_s: Double?
}

/// The calls for one user.
public actor Waypost {
    /// Gives the user's own token, never a key of the app; it is asked again, with `true`, where the last was refused.
    public typealias TokenProvider = @Sendable (_ isRefused: Bool) async throws -> String

    private let url: URL
    private let user: String
    private let kept: Kept
    private let token: TokenProvider
    private let session = URLSession(configuration: .default)

    public init(url: URL, user: String, kept: Kept, token: @escaping TokenProvider) {
        self.url = url
        self.user = user
        self.kept = kept
        self.token = token
    }

    /// The id of this installation: made once, and kept over logins.
    public var deviceId: String {
        if let found = kept.get(Name.device) { return String(decoding: found, as: UTF8.self) }
        let made = UUID().uuidString
        kept.put(Name.device, Data(made.utf8))
        return made
    }

    // MARK: The token of the provider

    /// Register what `didRegisterForRemoteNotificationsWithDeviceToken` gave: at each start, and after a login. Three
    /// attempts, 1 s and 2 s apart; what could not be said is kept, and said at the next start (`registerKept`).
    @discardableResult
    public func register(deviceToken: Data, appVersion: String, osVersion: String) async throws -> Bool {
        let token = deviceToken.map { String(format: "%02x", $0) }.joined()
        let said = Registration(platform: "ios", token: token, app_version: appVersion, os_version: osVersion)
        kept.put(Name.registration, try JSONEncoder().encode(said))
        return try await registerKept()
    }

    /// Say what an earlier start could not; whether nothing is left to say.
    @discardableResult
    public func registerKept() async throws -> Bool {
        guard let said = kept.get(Name.registration) else { return true }
        for attempt in 1...Limit.attempts {
            do {
                _ = try await call("PUT", devicePath, body: said)
                kept.put(Name.registration, nil)
                return true
            } catch let refused as Refused where !refused.isPassing {
                throw refused
            } catch is CancellationError {
                throw CancellationError()
            } catch {
                // No network, or busy: the next attempt, or the next start.
            }
            if attempt < Limit.attempts { try await pause(Double(attempt)) }
        }
        return false
    }

    /// Send nothing more to this device: at logout, while the user's token still holds.
    public func unregister() async throws {
        kept.put(Name.registration, nil)
        _ = try await call("DELETE", devicePath)
    }

    // MARK: Receipts

    /// Keep a receipt, and hand in all that wait; `waypost_id`, beside `aps`, is the notification.
    public func report(_ event: Event, of notificationId: String, action: String? = nil) async throws {
        let receipt = Receipt(event: event, notification_id: notificationId, device_id: deviceId, action: action)
        try keepReceipts(Array((waitingReceipts() + [receipt]).suffix(Limit.receipts)))
        try await reportKept()
    }

    /// Hand in the receipts that wait: at each start, too. What is `pending` is handed in again the next time.
    public func reportKept() async throws {
        let going = waitingReceipts()
        if going.isEmpty { return }
        var left: [Receipt] = []
        do {
            let answer = try await call("POST", "/v1/receipts", body: JSONEncoder().encode(["receipts": going]))
            let results = try JSONDecoder().decode(Results.self, from: answer).results
            left = zip(going, results).filter { $0.1.status == "pending" }.map { $0.0 }
        } catch let refused as Refused where !refused.isPassing {
            left = []
        } catch {
            return // they wait for the next time
        }
        let added = waitingReceipts().dropFirst(going.count) // the actor lets others in while it waits
        try keepReceipts(left + added)
    }

    private func waitingReceipts() -> [Receipt] {
        kept.get(Name.receipts).flatMap { try? JSONDecoder().decode([Receipt].self, from: $0) } ?? []
    }

    private func keepReceipts(_ waiting: [Receipt]) throws {
        kept.put(Name.receipts, try JSONEncoder().encode(waiting))
    }

    // MARK: The feed

    /// List a page: `folder` is inbox, unread or archive.
    public func feed(
        folder: String = "inbox", tag: String? = nil, cursor: String? = nil, limit: Int = 20
    ) async throws -> FeedPage {
        let asked = [("folder", folder), ("tag", tag), ("cursor", cursor), ("limit", String(limit))]
        let query = asked.compactMap { name, value in value.map { "\(name)=\(part($0))" } }.joined(separator: "&")
        let answer = try await call("GET", "/v1/users/\(part(user))/feed?\(query)")
        return try JSONDecoder().decode(FeedPage.self, from: answer)
    }

    /// Mark entries as seen, read, unread, archived, unarchived, deleted or restored; the number for the badge.
    public func mark(_ mark: String, ids: [String]) async throws -> Int {
        try await marked(Marks(mark: mark, ids: ids, until: nil, device_id: deviceId))
    }

    /// Mark all of the inbox up to an entry: the newest that is shown.
    public func markAll(_ mark: String, until: String) async throws -> Int {
        try await marked(Marks(mark: mark, ids: nil, until: until, device_id: deviceId))
    }

    private func marked(_ marks: Marks) async throws -> Int {
        let answer = try await call("POST", "/v1/users/\(part(user))/feed/marks", body: JSONEncoder().encode(marks))
        return try JSONDecoder().decode(Counts.self, from: answer).unread
    }

    // MARK: The live connection

    /// Tell `heard` each message until the task is cancelled; go on where the connection was cut. While the app is
    /// shown: in the background pushes tell what comes.
    public func follow(_ heard: @Sendable (LiveMessage) async -> Void) async throws {
        var cursor: String?
        var failures = 0
        var isRefused = false
        while !Task.isCancelled {
            var waitS = min(Limit.waitS, pow(2, Double(min(failures, 6)))) * Double.random(in: 0.5...1)
            do {
                let lines = try await events(after: cursor, isRefused: isRefused)
                for try await line in lines where line.hasPrefix("data:") {
                    let said = try JSONDecoder().decode(LiveMessage.self, from: Data(line.dropFirst(5).utf8))
                    (failures, isRefused, waitS) = (0, false, Double.random(in: 0...1))
                    cursor = said.cursor ?? cursor
                    if said.type == "reconnect" { waitS = Double.random(in: 0...1) * (said.within_s ?? 1) }
                    await heard(said)
                }
            } catch let refused as Refused {
                isRefused = refused.status == 401
                if !refused.isPassing && !isRefused { throw refused }
                failures += 1
            } catch is URLError {
                failures += 1
            }
            try await pause(waitS)
        }
    }

    /// The lines of one event stream (text/event-stream); `data:` alone matters, the cursor is in it.
    private func events(after cursor: String?, isRefused: Bool) async throws -> AsyncLineSequence<URLSession.AsyncBytes> {
        var request = try await opened("GET", "/live", isRefused: isRefused)
        request.setValue("text/event-stream", forHTTPHeaderField: "Accept")
        if let cursor { request.setValue(cursor, forHTTPHeaderField: "Last-Event-ID") }
        request.timeoutInterval = Limit.silenceS // the server says something every 25 seconds
        let (bytes, response) = try await session.bytes(for: request)
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        if status != 200 { throw Refused(status: status, code: "unknown") }
        return bytes.lines
    }

    // MARK: Calls

    private func call(_ method: String, _ path: String, body: Data? = nil) async throws -> Data {
        do {
            return try await answered(opened(method, path, isRefused: false), body)
        } catch let refused as Refused where refused.status == 401 {
            return try await answered(opened(method, path, isRefused: true), body)
        }
    }

    private func opened(_ method: String, _ path: String, isRefused: Bool) async throws -> URLRequest {
        guard let whole = URL(string: url.absoluteString + path) else { throw URLError(.badURL) }
        var request = URLRequest(url: whole, timeoutInterval: Limit.timeoutS)
        request.httpMethod = method
        request.setValue("Bearer \(try await token(isRefused))", forHTTPHeaderField: "Authorization")
        return request
    }

    private func answered(_ request: URLRequest, _ body: Data?) async throws -> Data {
        var request = request
        if let body {
            request.httpBody = body
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        }
        let (answer, response) = try await session.data(for: request)
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        if status >= 300 || status == 0 {
            let code = (try? JSONDecoder().decode(Problem.self, from: answer))?.code
            throw Refused(status: status, code: code ?? "unknown")
        }
        return answer
    }

    private func pause(_ seconds: Double) async throws {
        try await Task.sleep(nanoseconds: UInt64(seconds * 1_000_000_000))
    }

    private var devicePath: String { "/v1/devices/\(part(user))/\(part(deviceId))" }

    private func part(_ text: String) -> String {
        let plain = CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return text.addingPercentEncoding(withAllowedCharacters: plain) ?? text
    }
}

private enum Name {
    static let device = "waypost.device"
    static let registration = "waypost.registration"
    static let receipts = "waypost.receipts"
}

private enum Limit {
    static let attempts = 3
    static let receipts = 200
    static let timeoutS = 10.0
    static let silenceS = 60.0
    static let waitS = 60.0
}

private struct Registration: Codable {
    let platform: String
    let token: String
    let app_version: String
    let os_version: String
}

private struct Receipt: Codable {
    let event: Event
    let notification_id: String
    let device_id: String
    let action: String?
}

private struct Results: Decodable {
    struct Result: Decodable {
        let status: String?
    }

    let results: [Result]
}

private struct Marks: Encodable {
    let mark: String
    let ids: [String]?
    let until: String?
    let device_id: String
}

private struct Counts: Decodable {
    let unread: Int
}

private struct Problem: Decodable {
    let code: String
}
