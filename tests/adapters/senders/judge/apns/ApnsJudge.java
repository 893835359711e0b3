import com.eatthepath.pushy.apns.ApnsPushNotification;
import com.eatthepath.pushy.apns.auth.ApnsVerificationKey;
import com.eatthepath.pushy.apns.server.MockApnsServer;
import com.eatthepath.pushy.apns.server.MockApnsServerBuilder;
import com.eatthepath.pushy.apns.server.ParsingMockApnsServerListenerAdapter;
import com.eatthepath.pushy.apns.server.PushNotificationHandler;
import com.eatthepath.pushy.apns.server.PushNotificationHandlerFactory;
import com.eatthepath.pushy.apns.server.RejectionReason;
import com.eatthepath.pushy.apns.server.ValidatingPushNotificationHandlerFactory;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.handler.codec.http2.Http2Headers;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Pushy's validating server on a free port of loopback alone (its own start listens everywhere).
 *
 * <p>Reads what it knows from standard input, a line each: `server CERT KEY`, `key ID TEAM FILE TOPIC…`,
 * `device TOPIC TOKEN`, `dead TOKEN MILLISECONDS`, then `start`; prints the port, then a line of eight fields between
 * tabs for each push that it took. Ends with standard input.
 */
public final class ApnsJudge {
    public static void main(String[] arguments) throws Exception {
        MockApnsServerBuilder builder = new MockApnsServerBuilder().setUseAlpn(true).setListener(new Printer());
        Map<String, Set<String>> devices = new HashMap<>();
        Map<String, Instant> deaths = new HashMap<>();
        Map<String, ApnsVerificationKey> keys = new HashMap<>();
        Map<ApnsVerificationKey, Set<String>> topics = new HashMap<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String[] words = input.readLine().split(" "); !words[0].equals("start"); words = input.readLine().split(" ")) {
            switch (words[0]) {
                case "server" -> builder.setServerCredentials(new File(words[1]), new File(words[2]), null);
                case "key" -> {
                    ApnsVerificationKey key = ApnsVerificationKey.loadFromPkcs8File(new File(words[3]), words[2], words[1]);
                    keys.put(words[1], key);
                    topics.put(key, Set.copyOf(List.of(words).subList(4, words.length)));
                }
                case "device" -> devices.computeIfAbsent(words[1], topic -> new HashSet<>()).add(words[2]);
                case "dead" -> deaths.put(words[1], Instant.ofEpochMilli(Long.parseLong(words[2])));
                default -> throw new IllegalArgumentException(words[0]);
            }
        }
        builder.setHandlerFactory(reading(new ValidatingPushNotificationHandlerFactory(devices, deaths, keys, topics)));
        System.out.println(listen(builder.build()));
        input.readLine();
        System.exit(0);
    }

    /**
     * Pushy 0.15.4, the newest that the registry has, expects a JWT's signature in DER. RFC 7518 has R and S, 32 bytes
     * each: they are written down in the other form, and verified there.
     */
    private static PushNotificationHandlerFactory reading(PushNotificationHandlerFactory validating) {
        return session -> {
            PushNotificationHandler handler = validating.buildHandler(session);
            return (headers, payload) -> handler.handlePushNotification(withSignatureInDer(headers), payload);
        };
    }

    private static Http2Headers withSignatureInDer(Http2Headers headers) {
        String authorization = String.valueOf(headers.get("authorization"));
        int signatureAt = authorization.lastIndexOf('.') + 1;
        byte[] raw = Base64.getUrlDecoder().decode(authorization.substring(signatureAt));
        if (raw.length != 64) {
            throw new IllegalArgumentException("not a signature of RFC 7518");
        }
        byte[] r = new BigInteger(1, Arrays.copyOfRange(raw, 0, 32)).toByteArray();
        byte[] s = new BigInteger(1, Arrays.copyOfRange(raw, 32, 64)).toByteArray();
        byte[] der = ByteBuffer.allocate(6 + r.length + s.length)
                .put((byte) 0x30).put((byte) (4 + r.length + s.length))
                .put((byte) 0x02).put((byte) r.length).put(r)
                .put((byte) 0x02).put((byte) s.length).put(s)
                .array();
        String written = Base64.getUrlEncoder().withoutPadding().encodeToString(der);
        return headers.set("authorization", authorization.substring(0, signatureAt) + written);
    }

    private static int listen(MockApnsServer server) throws Exception {
        var field = MockApnsServer.class.getSuperclass().getDeclaredField("bootstrap");
        field.setAccessible(true);
        var bootstrap = (ServerBootstrap) field.get(server);
        var bound = bootstrap.bind(InetAddress.getByName("127.0.0.1"), 0).sync().channel().localAddress();
        return ((InetSocketAddress) bound).getPort();
    }

    private static final class Printer extends ParsingMockApnsServerListenerAdapter {
        @Override
        public void handlePushNotificationAccepted(ApnsPushNotification push) {
            byte[] payload = push.getPayload().getBytes(StandardCharsets.UTF_8);
            System.out.println(
                    String.join(
                            "\t",
                            push.getToken(),
                            push.getTopic(),
                            String.valueOf(push.getPushType()),
                            String.valueOf(push.getPriority()),
                            String.valueOf(push.getExpiration()),
                            String.valueOf(push.getCollapseId()),
                            String.valueOf(push.getApnsId()),
                            Base64.getEncoder().encodeToString(payload)));
        }

        @Override
        public void handlePushNotificationRejected(ApnsPushNotification push, RejectionReason reason, Instant since) {}
    }
}
