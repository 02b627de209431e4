package egress_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/egress"
)

const chunk = 1 << 20

// echo repeatedly sends a chunk to an echo server and reads it back.
func echo(b *testing.B, c net.Conn) {
	b.Helper()
	out, in := make([]byte, chunk), make([]byte, chunk)
	b.SetBytes(2 * chunk)
	for b.Loop() {
		sent := make(chan error, 1)
		go func() {
			_, err := c.Write(out)
			sent <- err
		}()
		if _, err := io.ReadFull(c, in); err != nil {
			b.Fatal(err)
		}
		if err := <-sent; err != nil {
			b.Fatal(err)
		}
	}
}

// The same bytes directly over loopback, and through the proxy.
func BenchmarkThroughput(b *testing.B) {
	b.Run("direct", func(b *testing.B) {
		c, err := net.Dial("tcp", say(b, ""))
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		echo(b, c)
	})
	b.Run("proxy", func(b *testing.B) {
		c, err := site(b, egress.Limits{Bytes: 1 << 50}, "").open(b, "connect example.com:22")
		if err != nil {
			b.Fatal(err)
		}
		echo(b, c.(*watched).UnixConn)
	})
}

// One small request directly to a server, and through its endpoint with TLS and a credential.
func BenchmarkRequest(b *testing.B) {
	serve := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }
	once := func(b *testing.B, c *http.Client, url string) {
		b.Helper()
		for b.Loop() {
			res, err := c.Post(url, "text/plain", strings.NewReader("prompt"))
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}
	b.Run("direct", func(b *testing.B) {
		address, roots := service(b, http.HandlerFunc(serve))
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		once(b, &http.Client{Transport: transport}, "https://"+address)
	})
	b.Run("endpoint", func(b *testing.B) {
		r, _ := api(b, nil, egress.Limits{Bytes: 1 << 50}, serve)
		once(b, r.client(b, "endpoint 0", nil), "http://127.0.0.1:15381/v1/messages")
	})
}
