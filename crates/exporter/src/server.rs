//! `/metrics` over HTTP. Clients cannot wait for each other's slowness, and cannot make
//! this process larger than so many connections are.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::snapshot::Snapshot;
use crate::text::{Form, expose};

/// Connections at once; for one more, the oldest is closed.
const CONNECTIONS: usize = 64;

/// How long a connection may last.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of a request that are read, at most.
const REQUEST: usize = 8192;

/// How long the daemon's answer holds: it is asked by one at a time.
const HOLDS: Duration = Duration::from_secs(1);

/// Where a connection's question goes, with the way back.
type Asking = mpsc::Sender<oneshot::Sender<Snapshot>>;

/// Serves until it is killed.
pub fn run(address: SocketAddr) -> Result<()> {
    // one thread: a fall to the level of the network has no other to wait for
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(1)
        .build()
        .context("cannot start")?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        tell!("http://{}/metrics", listener.local_addr()?);
        serve(listener).await;
        Ok(())
    })
}

async fn serve(listener: TcpListener) {
    let (asking, asked) = mpsc::channel(CONNECTIONS);
    tokio::spawn(ask(asked));
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // no descriptor left, or a fall that was refused
            Err(e) => {
                tell!("cannot accept a connection: {e}");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= CONNECTIONS
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let connection = tokio::spawn(converse(stream, asking.clone()));
        open.push_back(connection.abort_handle());
    }
}

/// Asks the daemon for the connections that wait, once for all of them.
async fn ask(mut asked: mpsc::Receiver<oneshot::Sender<Snapshot>>) {
    let mut last: Option<(Instant, Snapshot)> = None;
    while let Some(back) = asked.recv().await {
        let fresh = last.take().filter(|(at, _)| at.elapsed() < HOLDS);
        let (at, snapshot) = match fresh {
            Some(fresh) => fresh,
            None => match tokio::task::spawn_blocking(Snapshot::take).await {
                Ok(snapshot) => (Instant::now(), snapshot),
                Err(_) => continue,
            },
        };
        // the one that asked may have gone
        let _ = back.send(snapshot.clone());
        last = Some((at, snapshot));
    }
}

/// One request, one answer.
async fn converse(stream: TcpStream, asking: Asking) {
    let service = service_fn(|request| answer(request, &asking));
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(REQUEST)
        .serve_connection(TokioIo::new(stream), service);
    // what a client does wrong is its own concern
    let _ = timeout(PATIENCE, connection).await;
}

async fn answer(
    request: Request<Incoming>,
    asking: &Asking,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let known = matches!(request.uri().path(), "/" | "/metrics");
    if known && !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET\n");
        response
            .headers_mut()
            .insert(ALLOW, "GET, HEAD".parse().expect("a header's value"));
        return Ok(response);
    }
    Ok(match request.uri().path() {
        "/metrics" => match snapshot(asking).await {
            Some(snapshot) => {
                let accept = request.headers().get(ACCEPT).and_then(|a| a.to_str().ok());
                let form = Form::wanted(accept);
                plain(StatusCode::OK, form.media_type(), expose(snapshot, form))
            }
            None => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "text/plain",
                "the exporter could not ask\n",
            ),
        },
        "/" => plain(
            StatusCode::OK,
            "text/html",
            "<title>Tidegate</title><a href=\"/metrics\">metrics</a>\n",
        ),
        _ => plain(
            StatusCode::NOT_FOUND,
            "text/plain",
            "there is only /metrics\n",
        ),
    })
}

async fn snapshot(asking: &Asking) -> Option<Snapshot> {
    let (back, answer) = oneshot::channel();
    asking.send(back).await.ok()?;
    answer.await.ok()
}

fn plain(
    status: StatusCode,
    media_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, media_type)
        .body(Full::new(body.into()))
        .expect("the header's value is well formed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn start() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener));
        address
    }

    async fn get(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("{request}\r\nHost: x\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut text = String::new();
        timeout(Duration::from_secs(5), stream.read_to_string(&mut text))
            .await
            .expect("an answer in time")
            .unwrap();
        text
    }

    #[tokio::test]
    async fn metrics_are_served_whether_the_daemon_runs_or_not() {
        let address = start().await;
        let text = get(address, "GET /metrics HTTP/1.1").await;
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(text.contains("text/plain; version=0.0.4"), "{text}");
        assert!(text.contains("\ntidegate_up "), "{text}");
        let open = "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text;version=1.0.0";
        let text = get(address, open).await;
        assert!(text.contains("application/openmetrics-text"), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    #[tokio::test]
    async fn anything_else_is_refused() {
        let address = start().await;
        for (request, status) in [
            ("GET /etc/passwd HTTP/1.1", "404"),
            ("POST /metrics HTTP/1.1", "405"),
            ("nonsense", "400"),
        ] {
            let text = get(address, request).await;
            assert!(text.starts_with(&format!("HTTP/1.1 {status}")), "{text}");
        }
    }

    #[tokio::test]
    async fn silent_clients_keep_nobody_out() {
        let address = start().await;
        let mut silent = Vec::new();
        for _ in 0..3 * CONNECTIONS {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /metr").await.unwrap();
            silent.push(stream);
        }
        let text = get(address, "GET /metrics HTTP/1.1").await;
        assert!(text.contains("\ntidegate_up "), "{text}");
        // the oldest was closed for a newer one
        let mut byte = [0];
        let closed = timeout(Duration::from_secs(5), silent[0].read(&mut byte)).await;
        assert!(!matches!(closed, Err(_) | Ok(Ok(1..))));
    }

    #[tokio::test]
    async fn an_endless_request_is_cut_off() {
        let address = start().await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
        let endless = async {
            // refused, or closed while it is written
            while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
        };
        timeout(PATIENCE / 2, endless).await.expect("an end");
    }
}
