//! An HTTP/2 server on hyper: answers with the SHA-256 of the body in hexadecimal, then the body.
use std::{convert::Infallible, env, fs::File, io::BufReader, sync::Arc};

use http_body_util::{BodyExt, Full};
use hyper::{body::Bytes, body::Incoming, server::conn::http2, service::service_fn, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio_rustls::{rustls::ServerConfig, TlsAcceptor};

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let mut whole = format!("{:x}", Sha256::digest(&body)).into_bytes();
    whole.extend_from_slice(&body);
    Ok(Response::new(Full::new(Bytes::from(whole))))
}

#[tokio::main]
async fn main() -> Result<Infallible, Box<dyn std::error::Error>> {
    let files: Vec<String> = env::args().skip(1).collect();
    let certificates = rustls_pemfile::certs(&mut BufReader::new(File::open(&files[0])?)).collect::<Result<_, _>>()?;
    let key = rustls_pemfile::private_key(&mut BufReader::new(File::open(&files[1])?))?.ok_or("no key")?;
    let mut tls = ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key)?;
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    loop {
        let (stream, _) = listener.accept().await?;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                let serving = http2::Builder::new(TokioExecutor::new());
                let _ = serving.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
            }
        });
    }
}
