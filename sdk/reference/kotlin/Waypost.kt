// Waypost for an Android app: registers the device, reports receipts, lists and marks the feed, follows it live.
//
// A reference to copy: nothing but the platform (java.net, and org.json, which Android has). Every call blocks, so
// call it from a background thread, such as a WorkManager job or a coroutine on Dispatchers.IO.

package dev.waypost.reference

import java.io.IOException
import java.net.HttpURLConnection
import java.net.URL
import java.net.URLEncoder
import kotlin.random.Random
import org.json.JSONArray
import org.json.JSONObject

/** What an app keeps between its starts: SharedPreferences there, a map in a test. */
interface Kept {
    fun get(name: String): String?

    fun put(name: String, value: String?)
}

/** A refusal; `isPassing` where the same call may succeed later. The code is for logs, not for people. */
class Refused(val status: Int, val code: String) : IOException("$status $code") {
    val isPassing get() = status == 429 || status >= 500
}

/** What happened to a notification on this device. */
enum class Event { DELIVERED, DISPLAYED, OPENED, DISMISSED, ACTION }

/** A page of the feed, newest first; `next` begins the following one. */
class FeedPage(val items: List<JSONObject>, val unread: Int, val unseen: Int, val next: String?)

/**
 * The calls for one user. `token` gives the user's own token, never a key of the app; it is asked again, with
 * `true`, where the last one was refused.
 */
class Waypost(
    private val url: String,
    private val user: String,
    private val kept: Kept,
    private val token: (isRefused: Boolean) -> String,
) {
    /** The id of this installation: made once, and kept over logins. */
    val deviceId: String
        get() = kept.get(DEVICE) ?: java.util.UUID.randomUUID().toString().also { kept.put(DEVICE, it) }

    // The token of the provider.

    /**
     * Register the token that Firebase has given: at each start, on each new token, after a login. Three attempts, 1 s
     * and 2 s apart; what could not be said is kept, and said at the next start (`registerKept`).
     */
    fun register(providerToken: String, appVersion: String, osVersion: String): Boolean {
        val said = JSONObject()
            .put("platform", "android")
            .put("token", providerToken)
            .put("app_version", appVersion)
            .put("os_version", osVersion)
        kept.put(REGISTRATION, said.toString())
        return registerKept()
    }

    /** Say what an earlier start could not; whether nothing is left to say. */
    fun registerKept(): Boolean {
        val said = kept.get(REGISTRATION) ?: return true
        for (attempt in 1..ATTEMPTS) {
            try {
                call("PUT", "/v1/devices/${part(user)}/${part(deviceId)}", JSONObject(said))
                kept.put(REGISTRATION, null)
                return true
            } catch (refused: Refused) {
                if (!refused.isPassing) throw refused
            } catch (_: IOException) {
                // No network: the next attempt, or the next start.
            }
            if (attempt < ATTEMPTS) Thread.sleep(1000L * attempt)
        }
        return false
    }

    /** Send nothing more to this device: at logout, while the user's token still holds. */
    fun unregister() {
        kept.put(REGISTRATION, null)
        call("DELETE", "/v1/devices/${part(user)}/${part(deviceId)}")
    }

    // Receipts.

    /** Keep a receipt, and hand in all that wait; `waypost_id` of the message's data is the notification. */
    @Synchronized
    fun report(event: Event, notificationId: String, action: String? = null) {
        val receipt = JSONObject()
            .put("event", event.name.lowercase())
            .put("notification_id", notificationId)
            .put("device_id", deviceId)
            .put("action", action) // null: left out
        keepReceipts(waitingReceipts().plus(receipt).takeLast(RECEIPTS_KEPT))
        reportKept()
    }

    /** Hand in the receipts that wait: at each start, too. What is `pending` is handed in again the next time. */
    @Synchronized
    fun reportKept() {
        val waiting = waitingReceipts()
        if (waiting.isEmpty()) return
        try {
            val results = call("POST", "/v1/receipts", JSONObject().put("receipts", JSONArray(waiting))).getJSONArray("results")
            keepReceipts(waiting.filterIndexed { n, _ -> results.optJSONObject(n)?.optString("status") == "pending" })
        } catch (refused: Refused) {
            if (!refused.isPassing) keepReceipts(emptyList())
        } catch (_: IOException) {
            // They wait for the next time.
        }
    }

    private fun waitingReceipts(): List<JSONObject> = JSONArray(kept.get(RECEIPTS) ?: "[]").objects()

    private fun keepReceipts(waiting: List<JSONObject>) = kept.put(RECEIPTS, JSONArray(waiting).toString())

    // The feed.

    /** List a page: `folder` is inbox, unread or archive. */
    fun feed(folder: String = "inbox", tag: String? = null, cursor: String? = null, limit: Int = 20): FeedPage {
        val query = listOf("folder" to folder, "tag" to tag, "cursor" to cursor, "limit" to limit.toString())
            .filter { it.second != null }
            .joinToString("&") { (name, value) -> "$name=${part(value!!)}" }
        val page = call("GET", "/v1/users/${part(user)}/feed?$query")
        val next = if (page.isNull("next")) null else page.getString("next")
        return FeedPage(page.getJSONArray("items").objects(), page.getInt("unread"), page.getInt("unseen"), next)
    }

    /** Mark entries as seen, read, unread, archived, unarchived, deleted or restored; the number for the badge. */
    fun mark(mark: String, ids: List<String>): Int = marked(JSONObject().put("mark", mark).put("ids", JSONArray(ids)))

    /** Mark all of the inbox up to an entry: the newest that is shown. */
    fun markAll(mark: String, until: String): Int = marked(JSONObject().put("mark", mark).put("until", until))

    private fun marked(said: JSONObject): Int =
        call("POST", "/v1/users/${part(user)}/feed/marks", said.put("device_id", deviceId)).getInt("unread")

    // The live connection.

    /**
     * Tell `heard` each message (hello, entry, marked, fetch) until `isOver`, which is asked between messages; go on
     * where the connection was cut. While the app is shown: in the background pushes tell what comes.
     */
    fun follow(isOver: () -> Boolean, heard: (JSONObject) -> Unit) {
        var cursor: String? = null
        var failures = 0
        var isRefused = false
        while (!isOver()) {
            var waitMs = minOf(LONGEST_WAIT_MS, 1000L shl minOf(failures, 6)) * Random.nextDouble(0.5, 1.0)
            try {
                for (said in events(cursor, isRefused)) {
                    failures = 0
                    isRefused = false
                    waitMs = 1000.0 * Random.nextDouble()
                    cursor = said.optString("cursor", cursor ?: "").ifEmpty { null }
                    if (said.getString("type") == "reconnect") waitMs = said.getDouble("within_s") * 1000 * Random.nextDouble()
                    heard(said)
                    if (isOver()) return
                }
            } catch (refused: Refused) {
                isRefused = refused.status == 401
                if (!refused.isPassing && !isRefused) throw refused
                failures += 1
            } catch (_: IOException) {
                failures += 1
            }
            Thread.sleep(waitMs.toLong())
        }
    }

    /** The messages of one event stream (text/event-stream); `data:` alone matters, the cursor is in it. */
    private fun events(cursor: String?, isRefused: Boolean): Sequence<JSONObject> = sequence {
        val connection = opened("GET", "/live", isRefused)
        connection.setRequestProperty("Accept", "text/event-stream")
        cursor?.let { connection.setRequestProperty("Last-Event-ID", it) }
        connection.readTimeout = SILENCE_MS // the server says something every 25 seconds
        try {
            if (connection.responseCode != 200) throw refusal(connection)
            for (line in connection.inputStream.bufferedReader().lineSequence()) {
                if (line.startsWith("data:")) yield(JSONObject(line.removePrefix("data:")))
            }
        } finally {
            connection.disconnect()
        }
    }

    // Calls.

    private fun call(method: String, path: String, body: JSONObject? = null): JSONObject =
        try {
            answered(opened(method, path, isRefused = false), body)
        } catch (refused: Refused) {
            if (refused.status != 401) throw refused
            answered(opened(method, path, isRefused = true), body)
        }

    private fun opened(method: String, path: String, isRefused: Boolean): HttpURLConnection {
        val connection = URL(url + path).openConnection() as HttpURLConnection
        connection.requestMethod = method
        connection.connectTimeout = TIMEOUT_MS
        connection.readTimeout = TIMEOUT_MS
        connection.setRequestProperty("Authorization", "Bearer ${token(isRefused)}")
        return connection
    }

    private fun answered(connection: HttpURLConnection, body: JSONObject?): JSONObject {
        try {
            if (body != null) {
                connection.doOutput = true
                connection.setRequestProperty("Content-Type", "application/json")
                connection.outputStream.use { it.write(body.toString().toByteArray()) }
            }
            if (connection.responseCode >= 300) throw refusal(connection)
            val text = connection.inputStream.bufferedReader().readText()
            return if (text.isEmpty()) JSONObject() else JSONObject(text)
        } finally {
            connection.disconnect()
        }
    }

    private fun refusal(connection: HttpURLConnection): Refused {
        val said = connection.errorStream?.bufferedReader()?.readText().orEmpty()
        val code = runCatching { JSONObject(said).getString("code") }.getOrDefault("unknown")
        return Refused(connection.responseCode, code)
    }

    private fun part(text: String) = URLEncoder.encode(text, "UTF-8").replace("+", "%20")

    private companion object {
        const val DEVICE = "waypost.device"
        const val REGISTRATION = "waypost.registration"
        const val RECEIPTS = "waypost.receipts"
        const val ATTEMPTS = 3
        const val RECEIPTS_KEPT = 200
        const val TIMEOUT_MS = 10_000
        const val SILENCE_MS = 60_000
        const val LONGEST_WAIT_MS = 60_000L
    }
}

private fun JSONArray.objects(): List<JSONObject> = (0 until length()).map { getJSONObject(it) }
