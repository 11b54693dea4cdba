//! What stands between clients and servers: picks a server for each connection, and cuts.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::hosts::Hosts;
use crate::dice::Dice;

/// Listens, and forwards until the runtime ends. Does not know whether a server is well: a dead one is a refused
/// connection, a frozen one silence.
pub(super) async fn proxy(hosts: Arc<Hosts>, dice: Dice, cuts: bool) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let Some(server) = hosts.any(&dice) else { continue };
            // Within a head, within a line, in the middle of nowhere.
            let lives = cuts.then(|| Duration::from_millis(dice.between(1, 4000)));
            tokio::spawn(async move {
                let Ok(mut server) = TcpStream::connect(server).await else { return };
                let forward = copy_bidirectional(&mut client, &mut server);
                match lives {
                    Some(lives) => drop(timeout(lives, forward).await),
                    None => drop(forward.await),
                }
            });
        }
    });
    Ok(address)
}
