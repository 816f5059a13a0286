//! A local HTTP server that answers what a test tells it to, and remembers what it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Request {
    /// `GET /api/v1/whoami`.
    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// An answer.
pub struct Reply {
    pub status: u16,
    pub headers: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn new(status: u16, body: &str) -> Self {
        Self { status, headers: String::new(), body: body.as_bytes().to_vec() }
    }

    pub fn json(body: &Value) -> Self {
        Self::new(200, &body.to_string())
    }

    pub fn refusal(status: u16, code: &str, message: &str) -> Self {
        Self::new(status, &serde_json::json!({ "error": { "code": code, "message": message } }).to_string())
    }
}

/// The server.
pub struct Gateway {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Gateway {
    /// Answers every request with what the function says; `None` closes the connection without a word.
    pub fn start(answer: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                thread::spawn(move || serve(stream.unwrap(), &seen, &*answer));
            }
        });
        Self { url, requests }
    }

    /// Answers every request alike.
    pub fn always(status: u16, body: &str) -> Self {
        let body = body.to_owned();
        Self::start(move |_| Some(Reply::new(status, &body)))
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub fn lines(&self) -> Vec<String> {
        self.requests().iter().map(Request::line).collect()
    }
}

fn serve(stream: TcpStream, seen: &Mutex<Vec<Request>>, answer: &dyn Fn(&Request) -> Option<Reply>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let Some(request) = read(&mut reader) else { return };
    seen.lock().unwrap().push(request.clone());
    let Some(reply) = answer(&request) else { return };
    let mut stream = stream;
    let head = format!(
        "HTTP/1.1 {} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{}\r\n",
        reply.status,
        reply.body.len(),
        reply.headers
    );
    // Whoever asked may have gone.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&reply.body));
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let mut first = lines.first()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let headers: BTreeMap<String, String> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).unwrap();
    Some(Request { method, path: path.to_owned(), query: query.to_owned(), headers, body })
}
