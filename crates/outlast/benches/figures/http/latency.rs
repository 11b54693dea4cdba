//! From the agent's printing of a line to the byte at each of many clients.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::client::{get, post, read_until};
use super::served::Served;
use crate::agent::now_ns;
use crate::report::{figure, percentile};

/// One, a hundred and a thousand viewers of one run. The more there are the slower the agent prints, so that the
/// clients, which share the machine with the server, have the same number of events to read each second.
pub fn latency() {
    for (viewers, lines, pause, aims) in [
        (1, "1000", "2000", ["", ""]),
        (100, "300", "20000", ["<= 3 ms", "<= 10 ms"]),
        (1000, "60", "200000", ["", ""]),
    ] {
        let mut delays = measure(viewers, lines, pause);
        let name = format!("a line to {viewers} SSE viewer{}", if viewers == 1 { "" } else { "s" });
        figure(&format!("{name}, p50"), percentile(&mut delays, 0.5), "ms", aims[0]);
        figure(&format!("{name}, p99"), percentile(&mut delays, 0.99), "ms", aims[1]);
    }
}

fn measure(viewers: usize, lines: &str, pause: &str) -> Vec<f64> {
    // The stamps begin once everybody is there, which takes the viewers less than this.
    let settle = format!("{}", 500_000 + viewers * 2_000);
    let served = Served::with_agent(&["stamps-after", &settle, lines, pause]);
    let mut starter = post(served.address, "r");
    read_until(&mut starter, "RUN_STARTED");
    drop(starter);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let address = served.address;
    runtime.block_on(async {
        let tasks: Vec<_> = (0..viewers).map(|_| tokio::spawn(view(address))).collect();
        let mut delays = Vec::new();
        for task in tasks {
            delays.extend(task.await.expect("viewer"));
        }
        let expected = viewers * lines.parse::<usize>().expect("number");
        assert_eq!(delays.len(), expected, "every viewer saw every line");
        delays
    })
}

/// Milliseconds from each line's printing to its arrival.
async fn view(address: std::net::SocketAddr) -> Vec<f64> {
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("connect");
    stream.write_all(get(address, "r", "now", "sse").as_bytes()).await.expect("write");
    let mut delays = Vec::new();
    let mut text = String::new();
    let mut buffer = vec![0; 4096];
    loop {
        let n = stream.read(&mut buffer).await.expect("read");
        let at = now_ns();
        if n == 0 {
            return delays;
        }
        text.push_str(&String::from_utf8_lossy(&buffer[..n]));
        while let Some((line, rest)) = text.split_once('\n') {
            if let Some((_, stamp)) = line.split_once("stamp ") {
                // A late reader gets several lines in one event.
                let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
                for stamp in std::iter::once(stamp).chain(stamp.split("stamp ").skip(1)) {
                    let printed: u128 = digits(stamp).parse().expect("a stamp");
                    delays.push(at.saturating_sub(printed) as f64 / 1e6);
                }
            }
            text = rest.to_owned();
        }
    }
}
