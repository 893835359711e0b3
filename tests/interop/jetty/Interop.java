import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.HexFormat;
import org.eclipse.jetty.alpn.server.ALPNServerConnectionFactory;
import org.eclipse.jetty.http2.server.HTTP2ServerConnectionFactory;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.SecureRequestCustomizer;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.ssl.SslContextFactory;

/** An HTTP/2 server on Jetty: answers with the SHA-256 of the body in hexadecimal, then the body. */
public class Interop {
    public static void main(String[] arguments) throws Exception {
        SslContextFactory.Server tls = new SslContextFactory.Server();
        tls.setKeyStorePath(arguments[0]);
        tls.setKeyStorePassword(arguments[1]);
        HttpConfiguration configuration = new HttpConfiguration();
        configuration.addCustomizer(new SecureRequestCustomizer(false));
        HTTP2ServerConnectionFactory http2 = new HTTP2ServerConnectionFactory(configuration);
        ALPNServerConnectionFactory alpn = new ALPNServerConnectionFactory("h2");
        alpn.setDefaultProtocol("h2");
        Server server = new Server();
        ServerConnector connector =
            new ServerConnector(server, new SslConnectionFactory(tls, "alpn"), alpn, http2);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        server.setHandler(new Handler.Abstract() {
            @Override
            public boolean handle(Request request, Response response, Callback callback) throws Exception {
                byte[] body = Content.Source.asByteBuffer(request).array();
                String hash = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(body));
                ByteBuffer whole = ByteBuffer.allocate(hash.length() + body.length);
                whole.put(hash.getBytes()).put(body).flip();
                response.write(true, whole, callback);
                return true;
            }
        });
        server.start();
        System.out.println(connector.getLocalPort());
        server.join();
    }
}
