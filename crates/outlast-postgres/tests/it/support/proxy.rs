//! A wire between store and server that a test can cut at a point of its choice.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes everything on, until told otherwise.
pub struct Proxy {
    port: u16,
    orders: Arc<Orders>,
}

struct Orders {
    server: String,
    /// The answer to the next message that has these bytes in it is lost.
    lose: Mutex<Option<Vec<u8>>>,
    lost: watch::Sender<u64>,
    /// The next message that has these bytes in it stays here, and its connection stands still.
    freeze: Mutex<Option<Vec<u8>>>,
    frozen: watch::Sender<bool>,
}

impl Proxy {
    /// To a server, as `HOST:PORT`.
    pub async fn to(server: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("address").port();
        let orders = Arc::new(Orders {
            server: server.to_owned(),
            lose: Mutex::default(),
            lost: watch::Sender::new(0),
            freeze: Mutex::default(),
            frozen: watch::Sender::new(false),
        });
        let all = Arc::clone(&orders);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, Arc::clone(&all)));
            }
        });
        Proxy { port, orders }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The next message to the server that has this text in it is carried out there, but its answer does not arrive: the
    /// connection breaks instead.
    pub fn lose_answer_to(&self, text: &str) {
        *self.orders.lose.lock().expect("lock") = Some(text.as_bytes().to_vec());
    }

    /// How many answers were lost.
    pub fn lost(&self) -> u64 {
        *self.orders.lost.borrow()
    }

    /// The next message to the server that has this text in it does not leave, until [`Proxy::thaw`]: to the server it looks
    /// as if the host stood still before it.
    pub fn freeze_at(&self, text: &str) {
        *self.orders.freeze.lock().expect("lock") = Some(text.as_bytes().to_vec());
    }

    pub fn is_frozen(&self) -> bool {
        *self.orders.frozen.borrow()
    }

    pub fn thaw(&self) {
        self.orders.frozen.send_replace(false);
    }
}

async fn pass(client: TcpStream, orders: Arc<Orders>) {
    let Ok(server) = TcpStream::connect(&orders.server).await else {
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // Set once the answers to this connection's client are to be lost.
    let deaf = watch::Sender::new(false);
    tokio::select! {
        () = requests(from_client, to_server, &orders, &deaf) => {}
        () = answers(from_server, to_client, &orders, &deaf) => {}
    }
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    orders: &Orders,
    deaf: &watch::Sender<bool>,
) {
    let mut buffer = vec![0; 1 << 20];
    loop {
        let Ok(n @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        let message = &buffer[..n];
        if ordered(&orders.lose, message) {
            deaf.send_replace(true);
        }
        if ordered(&orders.freeze, message) {
            orders.frozen.send_replace(true);
            let _ = orders.frozen.subscribe().wait_for(|frozen| !frozen).await;
        }
        if to.write_all(message).await.is_err() {
            return;
        }
    }
}

/// Whether this is the message that is waited for; it is waited for once.
fn ordered(order: &Mutex<Option<Vec<u8>>>, message: &[u8]) -> bool {
    let found = |text: &mut Vec<u8>| message.windows(text.len()).any(|window| window == &text[..]);
    order.lock().expect("lock").take_if(found).is_some()
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    orders: &Orders,
    deaf: &watch::Sender<bool>,
) {
    let mut buffer = vec![0; 1 << 20];
    loop {
        let Ok(n @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        if *deaf.borrow() {
            // The server has answered, so it has done what it was asked.
            orders.lost.send_modify(|n| *n += 1);
            return;
        }
        if to.write_all(&buffer[..n]).await.is_err() {
            return;
        }
    }
}
