// The walk of a test: what an app calls in its life, against a real Waypost; each step prints a line.

package dev.waypost.reference

private class InMemory : Kept {
    private val values = mutableMapOf<String, String>()

    override fun get(name: String) = values[name]

    override fun put(name: String, value: String?) {
        if (value == null) values.remove(name) else values[name] = value
    }
}

fun main(arguments: Array<String>) {
    val (url, user, token, providerToken) = arguments
    var refusals = 0
    val tokenOf = { isRefused: Boolean ->
        if (isRefused) refusals += 1
        if (refusals == 0) "expired" else token // the first one is refused, and asked for again
    }
    val kept = InMemory()
    val waypost = Waypost(url, user, kept, tokenOf)
    println("registered ${waypost.deviceId} ${waypost.register(providerToken, "1.4.2", "15")}")
    var seen = 0
    waypost.follow({ seen == 2 }) { said ->
        if (said.getString("type") == "hello") println("hello ${said.getInt("unread")}")
        if (said.getString("type") == "entry") {
            seen += 1
            println("entry ${said.getJSONObject("entry").getString("id")}")
            if (seen == 1) {
                println("cut") // the server ends the connection, and sends another
                readln()
            }
        }
    }
    val first = waypost.feed(limit = 1)
    val second = waypost.feed(limit = 1, cursor = first.next)
    val ids = (first.items + second.items).map { it.getString("id") }
    println("feed ${ids.joinToString(" ")} ${first.unread} ${second.next}")
    println("tagged ${waypost.feed(tag = "none").items.size}")
    waypost.report(Event.OPENED, ids[1])
    println("reports left ${kept.get("waypost.receipts")}")
    println("unread ${waypost.mark("read", listOf(ids[1]))} ${waypost.markAll("read", ids[0])}")
    println("refused ${runCatching { waypost.mark("read", listOf("no-id")) }.exceptionOrNull()?.message}")
    waypost.unregister()
    println("unregistered, refused once: ${refusals == 1}")
}
