package notify

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func message() Message {
	return Message{ID: "m1", Time: time.Unix(1_790_000_000, 0), On: []string{"failed", OnHuman}, Project: "shop", Issue: "fix",
		Title: "Fix\r\nBcc: eve@example.invalid", Text: "shop/fix: failed <!channel> & *bold*\r\nBcc: eve@example.invalid"}
}

func TestProgram(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "got")
	env := []string{"PATH=" + os.Getenv("PATH"), "FILE=" + file}
	if err := (Program{Argv: []string{"sh", "-c", `cat > "$FILE"`}, Env: env}).Send(t.Context(), message()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	var got Message
	if err != nil || json.Unmarshal(text, &got) != nil || got.Title != message().Title || !got.Time.Equal(message().Time) {
		t.Errorf("%s, %v", text, err)
	}
	if err := (Program{Argv: []string{"sh", "-c", "exit 3"}, Env: env}).Send(t.Context(), message()); err == nil || errors.Is(err, errFinal) {
		t.Errorf("a program that fails: %v", err)
	}
	if err := (Program{Argv: []string{"no-such-program"}, Env: env}).Send(t.Context(), message()); !errors.Is(err, errFinal) {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	key := []byte("a key")
	var genuine bool
	var got Message
	elsewhere := 0
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook", func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body)
		genuine = r.Header.Get("webhook-signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
		_ = json.Unmarshal(body, &got)
	})
	for code := range map[int]bool{400: true, 404: true, 410: true, 429: true, 500: true, 503: true} {
		mux.HandleFunc(fmt.Sprintf("POST /%d", code), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	mux.HandleFunc("POST /redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { elsewhere++ })
	server := httptest.NewServer(mux)
	defer server.Close()
	send := func(path string) error {
		return Webhook{Address: server.URL + path, Key: key, Client: server.Client()}.Send(t.Context(), message())
	}
	if err := send("/hook"); err != nil || !genuine || got.ID != "m1" || got.Text != message().Text {
		t.Errorf("%v, genuine %t, %+v", err, genuine, got)
	}
	for path, final := range map[string]bool{"/400": true, "/404": true, "/410": true, "/redirect": true, "/429": false, "/500": false, "/503": false} {
		if err := send(path); err == nil || errors.Is(err, errFinal) != final {
			t.Errorf("%s: %v", path, err)
		}
	}
	if elsewhere > 0 {
		t.Error("a redirect was followed")
	}
	err := Slack{Address: "http://127.0.0.1:1/services/T0/B0/secret", Client: server.Client()}.Send(t.Context(), message())
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("an address that is a secret: %v", err)
	}
}

func TestSlack(t *testing.T) {
	t.Parallel()
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { body, _ = io.ReadAll(r.Body) }))
	defer server.Close()
	if err := (Slack{Address: server.URL, Client: server.Client()}).Send(t.Context(), message()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Text   string
		Blocks []struct {
			Text struct{ Type, Text string }
		}
	}
	if err := json.Unmarshal(body, &got); err != nil || strings.Contains(got.Text, "<!") || len(got.Blocks) != 1 ||
		got.Blocks[0].Text.Type != "plain_text" || got.Blocks[0].Text.Text != message().Text {
		t.Errorf("%s, %v", body, err)
	}
}

// The addresses of a message become links in Slack and lines in a mail.
func TestLinks(t *testing.T) {
	t.Parallel()
	m := message()
	m.IssueURL, m.RequestURL, m.RunURL = "/srv/shop/fix.md", "https://forge.example/7?a=1&b=<x|y>", "https://ralph.example/p/shop/runs/r1"
	if got, want := m.links(), "<https://forge.example/7?a=1&amp;b=%3Cx%7Cy%3E|Request> · <https://ralph.example/p/shop/runs/r1|Run>"; got != want {
		t.Errorf("Slack: %s", got)
	}
	for _, want := range []string{"\nIssue's page: " + m.IssueURL, "\nRequest: " + m.RequestURL, "\nRun's page: " + m.RunURL} {
		if !strings.Contains(m.body(), want) {
			t.Errorf("mail without %q:\n%s", want, m.body())
		}
	}
}

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"https://example.com/x": true, "http://127.0.0.1:80/x": true, "http://localhost/x": true, "http://[::1]/x": true,
		"http://example.com/x": false, "http://127.0.0.1.example.com": false, "ftp://example.com": false, "example.com": false, "": true, "https://": false,
	} {
		if err := CheckAddress(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// smtp starts a server without TLS for one connection. said returns what the client has sent.
func smtp(t *testing.T, host string) (address string, said func() string) {
	t.Helper()
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	text := make(chan string, 1)
	go func() {
		defer close(text)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		var all strings.Builder
		defer func() { text <- all.String() }()
		fmt.Fprint(conn, "220 here\r\n")
		data := false
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			line := lines.Text()
			all.WriteString(line + "\n")
			switch {
			case data && line == ".":
				data = false
				fmt.Fprint(conn, "250 taken\r\n")
			case data:
			case line == "DATA":
				data = true
				fmt.Fprint(conn, "354 go on\r\n")
			case strings.HasPrefix(line, "EHLO"):
				fmt.Fprint(conn, "250-here\r\n250 AUTH PLAIN\r\n")
			case line == "QUIT":
				fmt.Fprint(conn, "221 bye\r\n")
				return
			default:
				fmt.Fprint(conn, "250 ok\r\n")
			}
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String(), func() string {
		_ = l.Close()
		return <-text
	}
}

func TestMail(t *testing.T) {
	t.Parallel()
	address, said := smtp(t, "127.0.0.1")
	if err := (Mail{Server: address, From: "Ralph <ralph@example.invalid>", To: []string{"ada@example.invalid", "Grace <grace@example.invalid>"}}).Send(t.Context(), message()); err != nil {
		t.Fatal(err)
	}
	text := said()
	for _, want := range []string{"MAIL FROM:<ralph@example.invalid>", "RCPT TO:<ada@example.invalid>", "RCPT TO:<grace@example.invalid>", "Message-ID: <m1@ralph.invalid>", "Auto-Submitted: auto-generated", "Project: shop"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	header, _, _ := strings.Cut(text, "\n\n")
	if strings.Contains(header, "\nBcc") || strings.Contains(text, "RCPT TO:<eve") {
		t.Errorf("a title makes a header:\n%s", text)
	}
}

// Without TLS nothing is sent to another machine, and no password is sent at all.
func TestMailNeedsTLS(t *testing.T) {
	t.Parallel()
	address, said := smtp(t, "127.0.0.1")
	other := Mail{Server: "mail.example.invalid:25", From: "a@example.invalid", To: []string{"b@example.invalid"}}
	other.dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	if err, text := other.Send(t.Context(), message()), said(); err == nil || !strings.Contains(text, "EHLO") || strings.Contains(text, "MAIL FROM") {
		t.Errorf("a server elsewhere that has no TLS: %v\n%s", err, text)
	}
	address, said = smtp(t, "127.0.0.1")
	err := Mail{Server: address, From: "a@example.invalid", To: []string{"b@example.invalid"}, User: "u", Password: "a-pass-word"}.Send(t.Context(), message())
	text := said()
	if strings.Contains(text, "AUTH") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestCheckServer(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{"mail.example.com:587": true, "[::1]:25": true, "mail.example.com": false, ":25": false, "a:b": false, "a:0": false} {
		if err := CheckServer(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}
