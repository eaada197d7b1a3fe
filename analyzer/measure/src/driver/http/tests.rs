use super::*;
#[track_caller]
fn check(bytes: &str, expected: &Result<Progress, ResponseError>) {
    let response = ResponseBuffer {
        bytes: bytes.as_bytes().to_vec(),
    };
    assert_eq!(&response.progress(), expected, "{bytes:?}");
    // No proper prefix of a complete response is complete or refused.
    if matches!(expected, Ok(Progress::Complete(_))) {
        for end in 0..bytes.len() {
            let cut = ResponseBuffer {
                bytes: bytes.as_bytes()[..end].to_vec(),
            };
            assert_eq!(cut.progress(), Ok(Progress::Incomplete), "{end} bytes");
            assert!(cut.finish().is_err(), "{end} bytes");
        }
    }
}

fn complete(status: u16, body: &str) -> Progress {
    Progress::Complete(Response {
        status,
        body: body.into(),
    })
}

#[test]
fn a_request_is_one_buffer_with_its_host_filled_in() {
    let mut request = PreparedRequest::new("POST", "/session", Some("{}"), "00-a-b-01");
    let text = "POST /session HTTP/1.1\r\nHost: [::1]:80\r\ntraceparent: 00-a-b-01\r\n\
                Connection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    request.fill_in("[::1]:80");
    assert_eq!(request.bytes(), text.as_bytes());
    let room = request.bytes.capacity();
    request.fill_in("[::1]:80");
    assert_eq!(request.bytes(), text.as_bytes());
    assert_eq!(request.bytes.capacity(), room);
    let mut request = PreparedRequest::new("POST", "/session", None, "t");
    request.fill_in("h:1");
    assert!(request.bytes().ends_with(b"close\r\n\r\n"));
}

#[test]
fn content_length_ends_a_response() {
    check(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-length: 15\r\n\r\n{\"status\":\"ok\"}",
        &Ok(complete(200, "{\"status\":\"ok\"}")),
    );
    check(
        "HTTP/1.1 503 Busy\r\nContent-Length:  0 \r\n\r\n",
        &Ok(complete(503, "")),
    );
}

#[test]
fn chunks_end_a_response() {
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n",
        &Ok(complete(200, "hello!")),
    );
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nT: v\r\n\r\n",
        &Ok(complete(200, "a")),
    );
}

#[test]
fn a_status_without_body_needs_no_length() {
    check("HTTP/1.1 204 No Content\r\n\r\n", &Ok(complete(204, "")));
}

#[test]
fn what_comes_before_the_answer_is_passed_over() {
    check(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        &Ok(complete(200, "{}")),
    );
}

#[test]
fn a_response_without_a_length_ends_with_its_connection() {
    let text = "HTTP/1.1 200 OK\r\n\r\nabc";
    check(text, &Ok(Progress::Incomplete));
    let response = ResponseBuffer { bytes: text.into() };
    assert_eq!(
        response.finish().map(|response| response.body),
        Ok("abc".into())
    );
}

#[test]
fn what_can_never_become_a_response_is_refused() {
    for text in [
        "SSH-2.0-OpenSSH_9.6\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
    ] {
        let response = ResponseBuffer { bytes: text.into() };
        let judged = response.progress();
        assert!(
            matches!(judged, Err(ResponseError::Syntax(_))),
            "{text:?}: {judged:?}"
        );
    }
}

#[test]
fn head_and_body_are_bounded() {
    let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(HEAD_MAX_BYTES));
    check(
        &endless,
        &Err(ResponseError::TooLong("head", HEAD_MAX_BYTES)),
    );
    for header in ["Content-Length: 4194305", "Content-Length: 99999999"] {
        let text = format!("HTTP/1.1 200 OK\r\n{header}\r\n\r\n");
        check(&text, &Err(ResponseError::TooLong("body", BODY_MAX_BYTES)));
    }
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        &Err(ResponseError::TooLong("body", BODY_MAX_BYTES)),
    );
}
