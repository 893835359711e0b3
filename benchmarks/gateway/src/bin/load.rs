//! Loads a REST door: `load HOST:PORT name=value …`, one thread, keep-alive HTTP/1.1, and says what it saw as JSON.
//! The key is in `WAYPOST_API_KEY`: arguments can be read by everybody on the machine.
//!
//! `connections` (8) requests at once of `batch` (1) notifications each, to `users` (1000) in turn, until `count`
//! notifications or `seconds` have passed; with `rate`, that many notifications a second, late or not: a request's
//! latency counts from when it was due. `fields` is JSON to be added to each notification, such as `"dedup_window":0`,
//! `{n}` in it is its number; `first` is the number of the first; `prefix` goes before the number of a user. With `shapes`, a line each
//! (waypost.bench.shapes), notifications have one of them instead, users come in no order, and some are said twice. With `body` it is requests with that
//! body, `method` (POST) and `path`, in both of which `{n}` and `{user}` are numbers. All connections are open before the first
//! request is due. `marks` is a file that is given, for each request that was taken, u64s (little-endian): first number, how many, µs since 1970 when due, and when answered.
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    env,
    error::Error,
    fmt::Write as _,
    fs,
    io::ErrorKind,
    rc::Rc,
    str::FromStr,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::LocalSet,
    time::{sleep, sleep_until},
};

/// What is answered 429 or 503, or not at all, is asked again, as a caller would.
const REPEAT_AFTER: Duration = Duration::from_millis(50);
/// The status where the connection was closed instead.
const NO_ANSWER: u16 = 0;

struct Order {
    address: String,
    key: String,
    connections: u64,
    batch: u64,
    users: u64,
    count: u64,
    seconds: f64,
    rate: f64,
    first: u64,
    fields: String,
    prefix: String,
    shapes: Vec<String>,
    silent: bool,
    method: String,
    path: String,
    body: String,
}

struct Course {
    order: Order,
    next: Cell<u64>,
    began: Instant,
    began_us: u64,
    latencies_us: RefCell<Vec<u64>>,
    marks: RefCell<Vec<u64>>,
    statuses: RefCell<HashMap<u16, u64>>,
}

impl Course {
    /// The number of the first notification of the next request, and how many there are in it.
    fn take(&self) -> Option<(u64, u64)> {
        let taken = self.next.get();
        if taken >= self.order.count || self.began.elapsed().as_secs_f64() >= self.order.seconds {
            return None;
        }
        let many = self.order.batch.min(self.order.count - taken);
        self.next.set(taken + many);
        Some((taken, many))
    }

    fn due(&self, taken: u64) -> Instant {
        if self.order.rate == 0.0 { Instant::now() } else { self.began + Duration::from_secs_f64(taken as f64 / self.order.rate) }
    }

    fn us(&self, at: Instant) -> u64 {
        self.began_us + (at - self.began).as_micros() as u64
    }

    fn answered(&self, first: u64, many: u64, due: Instant, status: u16) {
        let now = Instant::now();
        self.latencies_us.borrow_mut().push((now - due).as_micros() as u64);
        *self.statuses.borrow_mut().entry(status).or_default() += 1;
        if (200..300).contains(&status) {
            self.marks.borrow_mut().extend([first, many, self.us(due), self.us(now)]);
        }
    }
}

/// Of so many that follow each other the last says again what the one in their middle said.
const BLOCK: u64 = 50;
const AGO: u64 = 25;

/// Spread numbers evenly: the same for the same one, and in no order (splitmix64).
fn scattered(n: u64) -> u64 {
    let n = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

fn write_mixed(order: &Order, n: u64, to: &mut String) {
    let n = if n % BLOCK == BLOCK - 1 { n - AGO } else { n };
    let chance = scattered(n);
    let shape = if n % BLOCK == BLOCK - 1 - AGO { 0 } else { (chance >> 32) as usize % order.shapes.len() };
    let (user, number) = (chance % order.users, n.to_string());
    let (shape, fields) = (order.shapes[shape].replace("{n}", &number), order.fields.replace("{n}", &number));
    write!(to, r#"{{"user_id":"{}{user}",{shape}{fields}}}"#, order.prefix).expect("a string takes everything");
}

fn write_notification(order: &Order, n: u64, to: &mut String) {
    if !order.shapes.is_empty() {
        return write_mixed(order, n, to);
    }
    let user = n % order.users;
    let shown = if order.silent {
        String::new()
    } else {
        format!(r#""title":"Your parcel is here","body":"Number {n} was left at the front door.","#)
    };
    write!(
        to,
        r#"{{"user_id":"{}{user}",{shown}"data":{{"mark":"{n}","screen":"parcels"}}{}}}"#,
        order.prefix,
        order.fields.replace("{n}", &n.to_string()),
    )
    .expect("a string takes everything");
}

fn request(order: &Order, first: u64, many: u64) -> String {
    let mut body = String::with_capacity(256 * many as usize);
    if order.batch == 1 {
        write_notification(order, first, &mut body);
    } else {
        body.push_str(r#"{"notifications":["#);
        for n in first..first + many {
            if n > first {
                body.push(',');
            }
            write_notification(order, n, &mut body);
        }
        body.push_str("]}");
    }
    let path = if order.batch == 1 { "/v1/notifications" } else { "/v1/notifications/batch" };
    said(order, "POST", path, &body)
}

/// Whatever else is to be asked for, with its number and its user's.
fn other_request(order: &Order, n: u64) -> String {
    let filled = |text: &str| text.replace("{n}", &n.to_string()).replace("{user}", &(n % order.users).to_string());
    said(order, &order.method, &filled(&order.path), &filled(&order.body))
}

fn said(order: &Order, method: &str, path: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        order.address, order.key, body.len(),
    )
}

/// Read one answer with a Content-Length; its status.
async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<u16, Box<dyn Error>> {
    buffer.clear();
    loop {
        if stream.read_buf(buffer).await? == 0 {
            return Err(std::io::Error::from(ErrorKind::UnexpectedEof).into());
        }
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = std::str::from_utf8(&buffer[..end])?.to_ascii_lowercase();
            let length = head.split("content-length:").nth(1).ok_or("no Content-Length")?;
            let length: usize = length.split("\r\n").next().unwrap_or_default().trim().parse()?;
            while buffer.len() < end + 4 + length {
                if stream.read_buf(buffer).await? == 0 {
                    return Err(std::io::Error::from(ErrorKind::UnexpectedEof).into());
                }
            }
            return Ok(head.split(' ').nth(1).ok_or("no status")?.parse()?);
        }
    }
}

async fn connect(order: &Order) -> Result<Vec<TcpStream>, Box<dyn Error>> {
    let mut streams = Vec::new();
    for _ in 0..order.connections {
        streams.push(open(order).await?);
    }
    Ok(streams)
}

async fn open(order: &Order) -> Result<TcpStream, Box<dyn Error>> {
    let stream = TcpStream::connect(&order.address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn ask(stream: &mut TcpStream, asked: &str, buffer: &mut Vec<u8>) -> Result<u16, Box<dyn Error>> {
    stream.write_all(asked.as_bytes()).await?;
    answer(stream, buffer).await
}

async fn run(course: Rc<Course>, mut stream: TcpStream) -> Result<(), Box<dyn Error>> {
    let mut buffer = Vec::with_capacity(1 << 16);
    while let Some((taken, many)) = course.take() {
        let due = course.due(taken);
        sleep_until(due.into()).await;
        let first = course.order.first + taken;
        let asked = if course.order.body.is_empty() { request(&course.order, first, many) } else { other_request(&course.order, first) };
        loop {
            let status = ask(&mut stream, &asked, &mut buffer).await.unwrap_or(NO_ANSWER);
            course.answered(first, many, due, status);
            if ![429, 503, NO_ANSWER].contains(&status) {
                break;
            }
            sleep(REPEAT_AFTER).await;
            if status == NO_ANSWER {
                stream = open(&course.order).await?;
            }
        }
    }
    Ok(())
}

fn report(course: &Course) -> String {
    let seconds = course.began.elapsed().as_secs_f64();
    let mut latencies_us = course.latencies_us.borrow_mut();
    latencies_us.sort_unstable();
    let part = |share: f64| latencies_us.get((latencies_us.len() as f64 * share) as usize).map_or(0.0, |us| *us as f64 / 1e3);
    let mut statuses: Vec<String> = course.statuses.borrow().iter().map(|(status, n)| format!(r#""{status}": {n}"#)).collect();
    statuses.sort();
    format!(
        r#"{{"submitted": {}, "seconds": {seconds:.6}, "p50_ms": {:.3}, "p95_ms": {:.3}, "p99_ms": {:.3}, "statuses": {{{}}}}}"#,
        course.next.get(), part(0.5), part(0.95), part(0.99), statuses.join(", "),
    )
}

fn value<T: FromStr>(values: &HashMap<String, String>, name: &str, default: T) -> Result<T, String> {
    values.get(name).map_or(Ok(default), |text| text.parse().map_err(|_| format!("{name} cannot be {text}")))
}

fn order(arguments: Vec<String>) -> Result<(Order, Option<String>), Box<dyn Error>> {
    let [address, named @ ..] = &arguments[..] else { return Err("usage: load HOST:PORT name=value …".into()) };
    let mut values = HashMap::new();
    for each in named {
        let (name, value) = each.split_once('=').ok_or_else(|| format!("{each}: expected name=value"))?;
        values.insert(name.to_owned(), value.to_owned());
    }
    let fields: String = value(&values, "fields", String::new())?;
    let shapes: String = value(&values, "shapes", String::new())?;
    let order = Order {
        address: address.clone(),
        key: env::var("WAYPOST_API_KEY")?,
        connections: value(&values, "connections", 8)?,
        batch: value(&values, "batch", 1)?,
        users: value(&values, "users", 1000)?,
        count: value(&values, "count", u64::MAX)?,
        seconds: value(&values, "seconds", f64::MAX)?,
        rate: value(&values, "rate", 0.0)?,
        first: value(&values, "first", 0)?,
        shapes: shapes.lines().map(str::to_owned).collect(),
        silent: fields.contains(r#""kind":"silent""#),
        fields: if fields.is_empty() { fields } else { format!(",{fields}") },
        prefix: value(&values, "prefix", "user-".to_owned())?,
        method: value(&values, "method", "POST".to_owned())?,
        path: value(&values, "path", String::new())?,
        body: value(&values, "body", String::new())?,
    };
    if order.count == u64::MAX && order.seconds == f64::MAX {
        return Err("give count or seconds".into());
    }
    Ok((order, values.remove("marks")))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (order, marks_file) = order(env::args().skip(1).collect())?;
    let streams = connect(&order).await?;
    let course = Rc::new(Course {
        order,
        next: Cell::new(0),
        began: Instant::now(),
        began_us: SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as u64,
        latencies_us: RefCell::default(),
        marks: RefCell::default(),
        statuses: RefCell::default(),
    });
    LocalSet::new()
        .run_until(async {
            let runs: Vec<_> = streams.into_iter().map(|stream| tokio::task::spawn_local(run(course.clone(), stream))).collect();
            for run in runs {
                run.await??;
            }
            Ok::<(), Box<dyn Error>>(())
        })
        .await?;
    println!("{}", report(&course));
    if let Some(file) = marks_file {
        let bytes: Vec<u8> = course.marks.borrow().iter().flat_map(|n| n.to_le_bytes()).collect();
        fs::write(file, bytes)?;
    }
    Ok(())
}
