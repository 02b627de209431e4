package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal/sqlite"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/sandboxes"
)

const (
	streams     = 64   // number of concurrent streams
	events      = 1500 // number of events in a stream
	eventsPiece = 200  // number of events that the model sends at once, in bulk
	firstBytes  = 50   // requests for the first byte, of each kind, per round
)

// benched is a gateway to a model, with the measurements of one variant.
type benched struct {
	client  *http.Client
	elapsed []time.Duration // of all streams
	cpu     []time.Duration // of the process: client, proxy and model
	first   []time.Duration // until the first byte of one request
}

// BenchmarkMetering reads 64 concurrent streams of a model through an endpoint, with and without metering. The two take
// turns, so that other load affects both. x is the ratio of the times with and without metering, and x-cpu that of the CPU
// times, as medians over the rounds; first-µs is what metering adds to the median time until the first byte of a single
// request.
func BenchmarkMetering(b *testing.B) {
	for _, kind := range []struct {
		name  string
		piece int // events that the model sends at once
	}{{"one event at a time", 1}, {"in bulk", eventsPiece}} {
		for _, capped := range []bool{false, true} {
			b.Run(kind.name+map[bool]string{true: ", with a cap"}[capped], func(b *testing.B) {
				body := stream()
				url := serve(b, body, kind.piece)
				bare, metered := dial(b, url, nil, nil), metering(b, url, capped)
				both := []*benched{bare, metered}
				for b.Loop() {
					for _, x := range both {
						x.readAll(b, int64(len(body)))
						for range firstBytes {
							x.readFirst(b)
						}
					}
					slices.Reverse(both)
				}
				b.ReportMetric(float64(streams*len(body))/1e6/slices.Min(metered.elapsed).Seconds(), "MB/s")
				b.ReportMetric(ratio(metered.elapsed, bare.elapsed), "x")
				b.ReportMetric(ratio(metered.cpu, bare.cpu), "x-cpu")
				b.ReportMetric(float64(median(metered.first)-median(bare.first))/1e3, "first-µs")
				b.ReportMetric(float64(median(bare.first))/1e3, "bare-first-µs")
			})
		}
	}
}

func median[T cmp.Ordered](list []T) T { return slices.Sorted(slices.Values(list))[len(list)/2] }

// ratio returns the median of x/y over all rounds.
func ratio(x, y []time.Duration) float64 {
	var all []float64
	for i := range x {
		all = append(all, float64(x[i])/float64(y[i]))
	}
	return median(all)
}

// stream returns an answer of a model as server-sent events.
func stream() []byte {
	var s bytes.Buffer
	event := func(kind, data string) { fmt.Fprintf(&s, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, data) }
	event("message_start", `"message":{"id":"m","model":"claude-sonnet-4-5","usage":{"input_tokens":1200,"cache_read_input_tokens":800,"output_tokens":1}}`)
	for i := range events {
		event("content_block_delta", fmt.Sprintf(`"index":0,"delta":{"type":"text_delta","text":"word %d of an answer"}`, i))
	}
	event("message_delta", `"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4000}`)
	event("message_stop", `"x":1`)
	return s.Bytes()
}

// serve starts a model that answers every request with the body, sending a number of events at once.
func serve(b *testing.B, body []byte, piece int) string {
	var pieces [][]byte
	for i, event := range bytes.SplitAfter(body, []byte("\n\n")) {
		if i%piece == 0 {
			pieces = append(pieces, nil)
		}
		pieces[len(pieces)-1] = append(pieces[len(pieces)-1], event...)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		flush := http.NewResponseController(w).Flush
		for _, p := range pieces {
			if _, err := w.Write(p); err != nil {
				return
			}
			_ = flush()
		}
	}))
	b.Cleanup(s.Close)
	return s.URL
}

// metering makes an endpoint whose meter has a budget and, with capped, an account with a cap and the real store.
func metering(b *testing.B, url string, capped bool) *benched {
	var account *ledger.Account
	if capped {
		store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "state.db"), slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = store.Close() })
		account = ledger.NewAccount(ledger.Caps{Day: loop.Budget{Tokens: 1 << 50}, Month: loop.Budget{CostUSD: 1e12}}, store, "p")
	}
	m := NewMeter(Network{Account: account}, "r")
	m.Limit(loop.Budget{Tokens: 1 << 50})
	return dial(b, url, m, account)
}

// dial opens an endpoint to the model, and makes a client of it.
func dial(b *testing.B, url string, m *Meter, account *ledger.Account) *benched {
	c := Config{
		Run: "bench-" + rand.Text(), Provider: proxied{sandboxes.NewNone(sandboxes.NoneConfig{})},
		Agents: agents.Chain{{Agent: agents.Claude{}}}, Secrets: redact.New(), Meter: m,
		Network: Network{User: agents.User{Env: []string{"ANTHROPIC_API_KEY=key"}}, Upstream: url, Account: account},
	}
	g, err := c.Open()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = g.Close() })
	transport := &http.Transport{MaxIdleConnsPerHost: streams, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", g.Socket)
		if err != nil {
			return nil, err
		}
		reply := make([]byte, len("ok\n"))
		if _, err = io.WriteString(conn, "ralph-egress/1 endpoint 0\n"); err == nil {
			_, err = io.ReadFull(conn, reply)
		}
		return conn, err
	}}
	b.Cleanup(transport.CloseIdleConnections)
	return &benched{client: &http.Client{Transport: transport}}
}

func (x *benched) ask(b *testing.B) io.ReadCloser {
	res, err := x.client.Post("http://127.0.0.1/v1/messages", "application/json", strings.NewReader(`{"messages":[]}`))
	if err != nil || res.StatusCode != http.StatusOK {
		b.Error(res, err)
		return http.NoBody
	}
	return res.Body
}

// readAll reads all streams concurrently.
func (x *benched) readAll(b *testing.B, size int64) {
	start, cpu := time.Now(), processCPU()
	var all sync.WaitGroup
	for range streams {
		all.Go(func() {
			body := x.ask(b)
			defer body.Close()
			if n, err := io.Copy(io.Discard, body); n != size || err != nil {
				b.Errorf("%d bytes, %v", n, err)
			}
		})
	}
	all.Wait()
	x.elapsed, x.cpu = append(x.elapsed, time.Since(start)), append(x.cpu, processCPU()-cpu)
}

// readFirst waits for the first byte of one answer.
func (x *benched) readFirst(b *testing.B) {
	start := time.Now()
	body := x.ask(b)
	defer body.Close()
	if _, err := io.ReadFull(body, make([]byte, 1)); err != nil {
		b.Error(err)
	}
	x.first = append(x.first, time.Since(start))
	_, _ = io.Copy(io.Discard, body)
}

// processCPU returns the CPU time of this process.
func processCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
