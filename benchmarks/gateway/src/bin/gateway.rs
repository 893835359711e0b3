//! Stands in for APNs, FCM and push services at the least CPU: answers by path, counts, checks nothing.
//!
//! `gateway PEM` (certificate and key) prints `{"port": …, "admin": …}`. One thread; TLS with HTTP/2 or HTTP/1.1, as the client begins.
//! A token that begins with `dead` is gone; one that begins with `fade` is throttled once for each notification.
//! The text after `"mark":"` in a body numbers the notification, or that after `No. `: when it came is kept for `/marks`.
//! Each answer has an id of its own, as the providers' have: no two heads are alike, and a client's memory of heads helps it as little as there.
//! Admin, plain HTTP: `/counts`, `/marks` (pairs of u64, little-endian: mark, µs since 1970), `/forget` (the marks),
//! `/set?<class>=<ms>` (how long an answer of apns, fcm or webpush takes; `never` for a black hole), `/storm?seconds=<s>`
//! (everything is throttled, with that Retry-After; 0 ends it).
use std::{
    cell::RefCell,
    collections::HashSet,
    convert::Infallible,
    env,
    error::Error,
    fs::File,
    future::pending,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    io::BufReader,
    rc::Rc,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response, body::Incoming, header::HeaderValue, rt::Executor, server::conn::http1, service::service_fn,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use memchr::memmem;
use tokio::{net::TcpListener, task::LocalSet};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

const CLASSES: [&str; 3] = ["apns", "fcm", "webpush"];
const NEVER: u64 = u64::MAX;
const STREAMS: u32 = 1000;
const WINDOW: u32 = 8 << 20;

#[derive(Default)]
struct Class {
    accepted: u64,
    dead: u64,
    throttled: u64,
    tokens: HashSet<u64>,
    deliveries: HashSet<u64>,
    fading: HashSet<u64>,
    latency_ms: u64,
}

#[derive(Default)]
struct Gateway {
    classes: [Class; 3],
    marks: Vec<(u64, u64)>,
    grants: u64,
    storm_s: u64,
    answers: u64,
}

type Shared = Rc<RefCell<Gateway>>;
type Answer = Response<Full<Bytes>>;

#[derive(Clone)]
struct OnThisThread;

impl<F: Future + 'static> Executor<F> for OnThisThread {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

fn hashed(parts: (&[u8], u64)) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(parts)
}

/// What follows `name` in `text` up to the closing quotation mark.
fn after<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let start = memmem::find(text, name)? + name.len();
    let length = memchr::memchr(b'"', &text[start..])?;
    Some(&text[start..start + length])
}

/// The number that follows `name` in `text`.
fn number_after(text: &[u8], name: &[u8]) -> Option<u64> {
    let start = memmem::find(text, name)? + name.len();
    let length = text[start..].iter().take_while(|each| each.is_ascii_digit()).count();
    std::str::from_utf8(&text[start..start + length]).ok()?.parse().ok()
}

fn answer(status: u16, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status.try_into().expect("a status");
    answer
}

enum Verdict {
    Taken,
    Dead,
    Throttled,
}

impl Gateway {
    fn take(&mut self, class: usize, token: &[u8], body: &[u8]) -> Verdict {
        let mark = number_after(body, b"\"mark\":\"").or_else(|| number_after(body, b"No. "));
        let counts = &mut self.classes[class];
        let delivery = hashed((token, mark.unwrap_or(0)));
        counts.tokens.insert(hashed((token, 0)));
        if self.storm_s > 0 {
            counts.throttled += 1;
            return Verdict::Throttled;
        }
        if token.starts_with(b"dead") {
            counts.dead += 1;
            return Verdict::Dead;
        }
        if token.starts_with(b"fade") && counts.fading.insert(delivery) {
            counts.throttled += 1;
            return Verdict::Throttled;
        }
        counts.accepted += 1;
        if let Some(mark) = mark {
            counts.deliveries.insert(delivery);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
            self.marks.push((mark, now.as_micros() as u64));
        }
        Verdict::Taken
    }

    fn counts(&self) -> String {
        let of_class = |(class, name): (&Class, &str)| {
            format!(
                r#""{name}": {{"accepted": {}, "dead": {}, "throttled": {}, "tokens": {}, "deliveries": {}}}"#,
                class.accepted, class.dead, class.throttled, class.tokens.len(), class.deliveries.len(),
            )
        };
        let classes: Vec<String> = self.classes.iter().zip(CLASSES).map(of_class).collect();
        format!(r#"{{{}, "grants": {}}}"#, classes.join(", "), self.grants)
    }
}

async fn push(gateway: Shared, request: Request<Incoming>) -> Result<Answer, hyper::Error> {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let body = body.collect().await?.to_bytes();
    if path == "/token" {
        gateway.borrow_mut().grants += 1;
        return Ok(answer(200, r#"{"access_token": "ya29.bench", "expires_in": 3599, "token_type": "Bearer"}"#));
    }
    let (class, token) = if let Some(token) = path.strip_prefix("/3/device/") {
        (0, token.as_bytes())
    } else if path.ends_with("/messages:send") {
        (1, after(&body, b"\"token\":\"").unwrap_or_default())
    } else if head.method == Method::POST {
        (2, path.rsplit('/').next().unwrap_or_default().as_bytes())
    } else {
        return Ok(answer(404, ""));
    };
    let (verdict, latency_ms, retry_after_s, id) = {
        let mut gateway = gateway.borrow_mut();
        gateway.answers += 1;
        (gateway.take(class, token, &body), gateway.classes[class].latency_ms, gateway.storm_s.max(1), hashed((b"answer", gateway.answers)))
    };
    match latency_ms {
        0 => {}
        NEVER => pending().await,
        wait_ms => tokio::time::sleep(Duration::from_millis(wait_ms)).await,
    }
    Ok(match verdict {
        Verdict::Taken => taken(class, id, head.headers.get("apns-id").cloned()),
        Verdict::Dead => dead(class),
        Verdict::Throttled => throttled(class, retry_after_s),
    })
}

fn taken(class: usize, id: u64, apns_id: Option<HeaderValue>) -> Answer {
    let made = |text: String| HeaderValue::try_from(text).expect("plain text");
    match class {
        0 => {
            let mut taken = answer(200, "");
            let own = apns_id.unwrap_or_else(|| made(format!("{:08X}-14A8-41E5-B60B-{:012X}", id >> 32, id & 0xFFFF_FFFF_FFFF)));
            taken.headers_mut().insert("apns-id", own);
            taken
        }
        1 => answer(200, format!(r#"{{"name": "projects/bench/messages/0:{:016}%{id:016x}"}}"#, id % 10_000_000_000_000_000)),
        _ => {
            let mut taken = answer(201, "");
            taken.headers_mut().insert("location", made(format!("/m/{id:016x}")));
            taken
        }
    }
}

fn dead(class: usize) -> Answer {
    match class {
        0 => answer(410, r#"{"reason": "Unregistered", "timestamp": 4102444800000}"#),
        1 => answer(404, fcm_error(404, "NOT_FOUND", "UNREGISTERED")),
        _ => answer(410, ""),
    }
}

fn throttled(class: usize, retry_after_s: u64) -> Answer {
    let mut throttled = match class {
        0 => answer(429, r#"{"reason": "TooManyRequests"}"#),
        1 => answer(429, fcm_error(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED")),
        _ => answer(429, ""),
    };
    throttled.headers_mut().insert("retry-after", retry_after_s.into());
    throttled
}

fn fcm_error(code: u16, status: &str, word: &str) -> String {
    let detail = format!(r#"{{"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": "{word}"}}"#);
    format!(r#"{{"error": {{"code": {code}, "message": "bench", "status": "{status}", "details": [{detail}]}}}}"#)
}

async fn admin(gateway: Shared, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let mut gateway = gateway.borrow_mut();
    Ok(match request.uri().path() {
        "/counts" => answer(200, gateway.counts()),
        "/marks" => {
            let bytes: Vec<u8> = gateway.marks.iter().flat_map(|(n, us)| [n.to_le_bytes(), us.to_le_bytes()]).flatten().collect();
            answer(200, bytes)
        }
        "/forget" => {
            gateway.marks.clear();
            answer(200, "")
        }
        "/storm" => {
            let asked = request.uri().query().and_then(|query| query.strip_prefix("seconds=")?.parse().ok());
            gateway.storm_s = asked.unwrap_or(0);
            answer(200, "")
        }
        "/set" => {
            for (name, value) in request.uri().query().unwrap_or_default().split('&').filter_map(|each| each.split_once('=')) {
                let latency_ms = if value == "never" { Some(NEVER) } else { value.parse().ok() };
                match (CLASSES.iter().position(|class| *class == name), latency_ms) {
                    (Some(class), Some(latency_ms)) => gateway.classes[class].latency_ms = latency_ms,
                    _ => return Ok(answer(400, "")),
                }
            }
            answer(200, "")
        }
        _ => answer(404, ""),
    })
}

async fn serve_admin(listener: TcpListener, gateway: Shared) -> Result<Infallible, Box<dyn Error>> {
    loop {
        let (stream, _) = listener.accept().await?;
        let gateway = gateway.clone();
        tokio::task::spawn_local(async move {
            let service = service_fn(move |request| admin(gateway.clone(), request));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, gateway: Shared) -> Result<Infallible, Box<dyn Error>> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (acceptor, gateway) = (acceptor.clone(), gateway.clone());
        tokio::task::spawn_local(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(move |request| push(gateway.clone(), request));
            let mut serving = auto::Builder::new(OnThisThread);
            serving.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS);
            serving.http2().initial_stream_window_size(1 << 20).initial_connection_window_size(WINDOW);
            let _ = serving.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn tls(pem_file: &str) -> Result<TlsAcceptor, Box<dyn Error>> {
    let certificates = rustls_pemfile::certs(&mut BufReader::new(File::open(pem_file)?)).collect::<Result<_, _>>()?;
    let key = rustls_pemfile::private_key(&mut BufReader::new(File::open(pem_file)?))?.ok_or("no key")?;
    let mut tls = ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key)?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(tls)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let acceptor = tls(&env::args().nth(1).ok_or("usage: gateway PEM")?)?;
    let (pushes, orders) = (TcpListener::bind("127.0.0.1:0").await?, TcpListener::bind("127.0.0.1:0").await?);
    println!(r#"{{"port": {}, "admin": {}}}"#, pushes.local_addr()?.port(), orders.local_addr()?.port());
    let gateway = Shared::default();
    LocalSet::new()
        .run_until(async {
            tokio::select! {
                ended = serve(pushes, acceptor, gateway.clone()) => ended.map(drop),
                ended = serve_admin(orders, gateway) => ended.map(drop),
            }
        })
        .await
}
