use super::accept::{ACCEPT_PAUSE, CONNECTIONS_MAX};
use super::*;
use crate::boot::bind;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nConnection: close\r\nHost: localhost:";

/// A loop that nothing but a request starts the runtime of, and none is sent.
fn server() -> Loop {
    let config = Config::of(&[
        "--agent",
        "true",
        "--port",
        "0",
        "--state-dir",
        "/nonexistent",
    ]);
    let record = BootRecord::begin(MonoNanos::now(), &config);
    let mut config = config;
    config.start.health_grace = Duration::from_hours(1);
    Loop {
        bound: bind(&config).unwrap(),
        config: Arc::new(config),
        record,
        connections: Vec::new(),
        runtime: Runtime::Idle { at: None },
        accept_at: None,
        full: false,
    }
}

fn connect(server: &Loop) -> TcpStream {
    TcpStream::connect(server.bound.address).unwrap()
}

fn ask_health(server: &Loop, client: &mut TcpStream) {
    let port = server.bound.address.port().to_string();
    let request = [HEALTH, port.as_bytes(), b"\r\n\r\n"].concat();
    client.write_all(&request).unwrap();
}

/// Takes the room in the socket to `client` until the peer reads.
fn fill_up(connection: &Connection) -> usize {
    let mut filled = 0;
    let mut stream = connection.stream();
    for length in [65_536, 1_024, 1] {
        let bytes = vec![b' '; length];
        while let Ok(length) = stream.write(&bytes) {
            filled += length;
        }
    }
    filled
}

#[test]
fn a_health_whose_answer_has_to_wait_counts_when_it_is_out() {
    let mut server = server();
    let mut client = connect(&server);
    server.accept(MonoNanos::now());
    // Asked first: nothing that the client sends may make room.
    ask_health(&server, &mut client);
    let filled = fill_up(&server.connections[0]);
    server.advance(0);
    assert!(server.record.health.is_none(), "it is not out");
    assert_eq!(
        server.connections[0].state,
        State::Writing { then_close: true }
    );

    let mut noise = vec![0; filled];
    client.read_exact(&mut noise).unwrap();
    let read = MonoNanos::now();
    server.turn();
    let health = server.record.health.as_ref().unwrap();
    assert!(read <= health.flushed());
    let mut answer = String::new();
    server.clear_places(MonoNanos::now());
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with(r#"{"status":"ok"}"#), "{answer}");
}

#[test]
fn an_answer_that_ends_its_connection_does_so_after_the_hand_over() {
    let mut server = server();
    let mut client = connect(&server);
    server.accept(MonoNanos::now());
    ask_health(&server, &mut client);
    fill_up(&server.connections[0]);
    server.advance(0);
    let unsent = server.connections.remove(0).into_pending().unsent;
    assert!(unsent.then_close && unsent.health.is_some());
    assert!(unsent.bytes.ends_with(br#"{"status":"ok"}"#));
}

#[test]
fn connections_that_end_with_their_answer_take_no_places() {
    let mut server = server();
    let mut clients: Vec<_> = (0..100).map(|_| connect(&server)).collect();
    for client in &mut clients {
        ask_health(&server, client);
    }
    server.accept(MonoNanos::now());
    assert_eq!(server.accept_at, None);
    server.clear_places(MonoNanos::now());
    for mut client in clients {
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

#[test]
fn the_listener_is_looked_at_again_when_a_place_is_free() {
    let mut server = server();
    let clients: Vec<_> = (0..=CONNECTIONS_MAX).map(|_| connect(&server)).collect();
    let now = MonoNanos::now();
    server.accept(now);
    assert!(server.full && server.accept_at.is_some());
    server.clear_places(now);
    assert!(server.full, "nobody has left");
    drop(clients);
    server.turn();
    assert_eq!((server.full, server.accept_at), (false, None));
}

#[test]
fn a_pause_that_is_over_is_not_waited_for() {
    let mut server = server();
    let now = MonoNanos::now();
    server.accept_at = Some(now);
    assert_eq!(server.timeout(now), None);
    server.accept_at = Some(now.after(ACCEPT_PAUSE));
    assert!(server.timeout(now).is_some());
}
