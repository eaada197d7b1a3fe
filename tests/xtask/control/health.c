/* The control of `cargo xtask bench start`: the least that a process can do to
 * answer /health. Static, no allocation; binds a free loopback port, says where,
 * answers every request with 200 until SIGTERM ends it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    static const char answer[] =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n"
        "Content-Length: 15\r\n\r\n{\"status\":\"ok\"}";
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    char text[2048];
    int one = 1;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 128) ||
        getsockname(listener, (struct sockaddr *)&address, &size))
        return 1;
    int length = snprintf(text, sizeof text, "control listening on http://127.0.0.1:%d\n", ntohs(address.sin_port));
    if (write(STDOUT_FILENO, text, length) != length)
        return 1;
    for (;;) {
        int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (peer < 0)
            continue;
        setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        ssize_t read_now, used = 0;
        while ((read_now = read(peer, text + used, sizeof text - 1 - used)) > 0) {
            used += read_now;
            text[used] = 0;
            if (strstr(text, "\r\n\r\n")) {
                if (write(peer, answer, sizeof answer - 1) < 0)
                    break;
                used = 0;
            }
        }
        close(peer);
    }
}
