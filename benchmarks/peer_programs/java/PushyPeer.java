import com.eatthepath.json.JsonParser;
import com.eatthepath.pushy.apns.ApnsClient;
import com.eatthepath.pushy.apns.ApnsClientBuilder;
import com.eatthepath.pushy.apns.auth.ApnsSigningKey;
import com.eatthepath.pushy.apns.util.SimpleApnsPayloadBuilder;
import com.eatthepath.pushy.apns.util.SimpleApnsPushNotification;
import com.sun.management.OperatingSystemMXBean;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;

/** Sends to APNs with pushy: {@code java PushyPeer.java ORDER}, ORDER as in drive.py. */
class PushyPeer {
    /** Until the compiler of the virtual machine has done its work: what is measured is a process that has run for a while. */
    static final int WARM_UP = 20_000;

    final ApnsClient client;
    final List<String> tokens;
    final int inFlight;

    PushyPeer(Map<String, Object> order) throws Exception {
        URI gateway = URI.create((String) order.get("url"));
        client = new ApnsClientBuilder()
            .setApnsServer(gateway.getHost(), gateway.getPort())
            .setTrustedServerCertificateChain(new File((String) order.get("ca_file")))
            .setSigningKey(ApnsSigningKey.loadFromPkcs8File(new File((String) order.get("apns_key_file")), "FGHIJ67890", "ABCDE12345"))
            .build();
        tokens = ((List<?>) order.get("tokens")).stream().map(String.class::cast).toList();
        inFlight = ((Number) order.get("in_flight")).intValue();
    }

    void run(int first, int count) throws InterruptedException {
        Semaphore places = new Semaphore(inFlight);
        for (int n = first; n < first + count; n++) {
            places.acquire();
            String payload = new SimpleApnsPayloadBuilder()
                .setAlertTitle("Your parcel is here")
                .setAlertBody("Number " + n + " was left at the front door.")
                .addCustomProperty("mark", String.valueOf(n))
                .build();
            client.sendNotification(new SimpleApnsPushNotification(tokens.get(n % tokens.size()), "com.example.demo", payload))
                .whenComplete((answer, failure) -> {
                    if (failure != null || !answer.isAccepted()) {
                        System.err.println(failure == null ? answer : failure);
                        Runtime.getRuntime().halt(1);
                    }
                    places.release();
                });
        }
        places.acquire(inFlight);
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> order = new JsonParser().parseJsonObject(Files.readString(Path.of(arguments[0])));
        PushyPeer peer = new PushyPeer(order);
        int count = ((Number) order.get("count")).intValue();
        OperatingSystemMXBean process = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        peer.run(0, WARM_UP);
        long before = process.getProcessCpuTime(), started = System.nanoTime();
        peer.run(WARM_UP, count);
        double seconds = (System.nanoTime() - started) / 1e9, cpu = (process.getProcessCpuTime() - before) / 1e9;
        System.out.println("{\"seconds\": " + seconds + ", \"cpu_s\": " + cpu + "}");
        peer.client.close().join();
    }
}
