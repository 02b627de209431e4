package web_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/gittest"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/internal/web"
	"github.com/ralph-pool/ralph/pool/journal"
)

func TestMain(m *testing.M) {
	gittest.Isolate()
	goleak.VerifyTestMain(m)
}

// alone is a store that currently cannot find runs of other machines.
type alone struct{ journal.Store }

func (a alone) Find(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	list, err := a.Store.Find(ctx, q)
	if q.Run != "" {
		err = journal.ErrUnavailable
	}
	return list, err
}

// counted is a store that counts its reads, and fails while away is set.
type counted struct {
	journal.Store
	reads atomic.Int64
	away  atomic.Bool
}

func (c *counted) Find(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	c.reads.Add(1)
	if c.away.Load() {
		return nil, journal.ErrUnavailable
	}
	return c.Store.Find(ctx, q)
}

// The runs of a project are read at once, and listed even if their records cannot be read.
func TestRunningRunsAreReadAtOnce(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "shop", 3)
	p.Wait()
	store := &counted{Store: &p.Store}
	p.History = store
	s := start(t, nil, p)
	s.watch.Until(t, "shop", journal.EventStarted, 3)
	for _, away := range []bool{false, true} {
		store.away.Store(away)
		before := store.reads.Load()
		var got struct {
			Problem string `json:"problem"`
			Running []struct {
				Issue string `json:"issue"`
				State string `json:"state"`
				Agent string `json:"agent"`
			} `json:"running"`
		}
		s.get("/v1/projects/shop", &got)
		if n := store.reads.Load() - before; n != 1 {
			t.Errorf("%d reads", n)
		}
		if len(got.Running) != 3 || (got.Problem != "") != away {
			t.Fatalf("away %t: %+v", away, got)
		}
		for n, r := range got.Running {
			if r.Issue != "task-"+strconv.Itoa(n+1) || r.State != "running" || (r.Agent == "") != away {
				t.Errorf("away %t: %+v", away, r)
			}
		}
	}
}

// server is a service with its API on loopback.
type server struct {
	t       *testing.T
	url     string
	service *service.Service
	watch   *servicetest.Watch
}

func start(t *testing.T, change func(*web.Config), list ...*servicetest.Project) server {
	t.Helper()
	s := server{t: t, watch: servicetest.NewWatch()}
	c := web.Config{Metrics: web.NewMetrics(), Version: "test"}
	s.service = service.New(service.Config{Observe: func(project string, e journal.Event) {
		c.Metrics.Observe(project, e)
		s.watch.Observe(project, e)
	}})
	c.Service = s.service
	if change != nil {
		change(&c)
	}
	var projects []service.Project
	for _, p := range list {
		projects = append(projects, p.Project())
	}
	s.service.Apply(t.Context(), projects, 0)
	l, err := web.Listen(t.Context(), "127.0.0.1:0", c.Token)
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(ctx, l, c) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		s.service.Kill()
		s.service.Wait()
		cancel(nil)
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return s
}

// do sends a request. headers are "Name: value" and may include Host.
func (s server) do(method, path string, headers ...string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func (s server) get(path string, into any) {
	s.t.Helper()
	res := s.do(http.MethodGet, path)
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatalf("GET %s: %s, %v", path, res.Status, err)
	}
}

type runs struct {
	Runs []struct {
		Run   string `json:"run"`
		State string `json:"state"`
		Issue string `json:"issue"`
	} `json:"runs"`
}

// unshared is a pause that cannot be passed on.
type unshared struct{}

func (unshared) IsPaused() bool { return false }

func (unshared) Set(bool) error { return errors.New("the database is away") }

// Every response conforms to the OpenAPI document.
func TestAnswersAreAsDescribed(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "shop", 2)
	p.Issue("odd", "<script>alert(1)</script> \u202e\u0007")
	bad := servicetest.New(t, "bad", 0)
	bad.Break(errors.New("no such key"))
	away := servicetest.New(t, "away", 0)
	away.Pause, away.History = unshared{}, alone{&away.Store}
	s := start(t, nil, p, bad, away)
	s.watch.Until(t, "shop", journal.EventEnded, 3)
	unasked := filepath.Join(p.Repo(), ".ralph", "backlog", "unasked.md")
	if err := os.WriteFile(unasked, []byte("---\ntitle: Nobody asked for it\n---\nDo it.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	servicetest.Eventually(t, func() bool {
		status, err := s.service.Status("away")
		return err == nil && status.State == service.Waiting
	})

	described := s.do(http.MethodGet, "/v1/openapi-3.0.json")
	defer described.Body.Close()
	document, err := io.ReadAll(described.Body)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		t.Fatal(err)
	}
	doc.Servers = openapi3.Servers{{URL: s.url}}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	var list runs
	s.get("/v1/projects/shop/runs", &list)
	run := list.Runs[0].Run
	if text, err := io.ReadAll(s.do("GET", "/v1/projects/shop/runs/"+run).Body); err != nil || strings.Contains(string(text), "cost_usd") {
		t.Errorf("a run whose cost is not known: %s, %v", text, err)
	}
	if res := s.do("GET", "/p/away/runs/elsewhere"); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the page of a run of another machine: %s", res.Status)
	}
	asked := map[string]bool{}
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/v1/projects", 200},
		{"GET", "/v1/projects/shop", 200},
		{"GET", "/v1/projects/bad", 200},
		{"GET", "/v1/projects/none", 404},
		{"GET", "/v1/projects/shop/issues", 200},
		{"GET", "/v1/projects/bad/issues", 503},
		{"GET", "/v1/projects/shop/runs", 200},
		{"GET", "/v1/projects/shop/runs?limit=1&issue=task-1", 200},
		{"GET", "/v1/projects/shop/runs?limit=0", 422},
		{"GET", "/v1/projects/shop/runs?limit=many", 422},
		{"GET", "/v1/projects/shop/runs/" + run, 200},
		{"GET", "/v1/projects/shop/runs/none", 404},
		{"GET", "/v1/projects/shop/runs/" + run + "/events", 200},
		{"GET", "/v1/projects/shop/runs/none/events", 404},
		{"POST", "/v1/projects/shop/pause", 204},
		{"POST", "/v1/projects/bad/pause", 503},
		{"POST", "/v1/projects/shop/resume", 204},
		{"POST", "/v1/projects/shop/issues/task-1/stop", 409},
		{"POST", "/v1/projects/shop/issues/task-1/stop?run=" + run, 409},
		{"POST", "/v1/projects/shop/issues/none/stop", 404},
		{"POST", "/v1/projects/shop/issues/none/retry", 404},
		{"POST", "/v1/projects/shop/issues/unasked/retry", 409},
		{"POST", "/v1/projects/away/pause", 503},
		{"GET", "/v1/projects/away/runs/elsewhere", 503},
		{"POST", "/v1/projects/shop/issues/task-1/retry?fresh=maybe", 422},
		{"POST", "/v1/projects/shop/issues/task-1/retry?fresh=true", 200},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, s.url+c.path, nil)
		route, params, err := router.FindRoute(r)
		if err != nil {
			t.Errorf("%s %s: %v", c.method, c.path, err)
			continue
		}
		asked[route.Operation.OperationID] = true
		res := s.do(c.method, c.path)
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != c.status {
			t.Errorf("%s %s: %s, want %d, %v\n%s", c.method, c.path, res.Status, c.status, err, text)
			continue
		}
		if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
			continue // see TestEvents
		}
		in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}
		if err := openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
			RequestValidationInput: in, Status: res.StatusCode, Header: res.Header, Body: io.NopCloser(bytes.NewReader(text)),
			Options: &openapi3filter.Options{IncludeResponseStatus: true},
		}); err != nil {
			t.Errorf("%s %s: %v\n%s", c.method, c.path, err, text)
		}
	}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			if !asked[op.OperationID] {
				t.Errorf("%s was not asked", op.OperationID)
			}
		}
	}
}

type event struct{ id, kind, data string }

// events reads a stream until it ends or enough returns true.
func events(t *testing.T, res *http.Response, enough func(event) bool) (list []event) {
	t.Helper()
	var e event
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
			list = append(list, e)
			if enough != nil && enough(e) {
				return list
			}
			e = event{}
		}
	}
	return list
}

// A client that reconnects with the last id gets the remaining events once each, and then the end.
func TestEvents(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "shop", 1)
	p.Wait()
	s := start(t, nil, p)
	begun := s.watch.Until(t, "shop", journal.EventStarted, 1)
	path := "/v1/projects/shop/runs/" + begun.Run + "/events"
	first := events(t, s.do(http.MethodGet, path), func(e event) bool { return strings.Contains(e.data, `"kind":"started"`) })
	last := first[len(first)-1]
	res := s.do(http.MethodGet, path, "Last-Event-ID: "+last.id)
	p.Go()
	rest := events(t, res, nil)
	all := events(t, s.do(http.MethodGet, path), nil)
	if got, want := fmt.Sprint(append(first, rest...)), fmt.Sprint(all); got != want {
		t.Errorf("in two parts:\n%s\nat once:\n%s", got, want)
	}
	if end := all[len(all)-1]; end.kind != "end" || !strings.Contains(all[len(all)-2].data, `"kind":"ended"`) {
		t.Errorf("the end: %+v", all[max(0, len(all)-2):])
	}
	for _, e := range all[:len(all)-1] {
		var decoded journal.Event
		if err := json.Unmarshal([]byte(e.data), &decoded); err != nil || decoded.Run != begun.Run {
			t.Errorf("%s: %+v, %v", e.data, decoded, err)
		}
	}
	if res := s.do(http.MethodGet, path, "Last-Event-ID: -1"); res.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a negative id: %s", res.Status)
	}
	if list := events(t, s.do(http.MethodGet, path, "Last-Event-ID: 999999999"), nil); len(list) != 1 || list[0].kind != "end" {
		t.Errorf("an id behind the end: %+v", list)
	}
	far := journal.Record{Run: journal.Run{ID: "far", Key: "far", Host: "far away", Dir: "/nowhere", Started: time.Now()}, State: journal.State{Ended: time.Now()}}
	far.Verdict.Outcome = journal.Succeeded
	if err := p.Store.Save(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	list := events(t, s.do(http.MethodGet, "/v1/projects/shop/runs/far/events"), nil)
	if len(list) != 2 || list[1].kind != "end" || !strings.Contains(list[0].data, `"kind":"ended","run":"far","issue":"far","outcome":"succeeded"`) {
		t.Errorf("of another machine: %+v", list)
	}
}

// Clients beyond the limit are rejected, and the slot of a client that leaves is free again.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "shop", 1)
	p.Wait()
	s := start(t, nil, p)
	begun := s.watch.Until(t, "shop", journal.EventStarted, 1)
	path := "/v1/projects/shop/runs/" + begun.Run + "/events"
	var open []*http.Response
	for i := range 200 {
		res := s.do(http.MethodGet, path)
		if res.StatusCode != http.StatusOK {
			t.Fatalf("client %d: %s", i+1, res.Status)
		}
		events(t, res, func(event) bool { return true })
		open = append(open, res)
	}
	if res := s.do(http.MethodGet, path); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %s, %v", res.Status, res.Header)
	}
	if res := s.do(http.MethodGet, "/v1/projects"); res.StatusCode != http.StatusOK {
		t.Errorf("another request: %s", res.Status)
	}
	_ = open[0].Body.Close()
	servicetest.Eventually(t, func() bool { return s.do(http.MethodGet, path).StatusCode == http.StatusOK })
	p.Go()
	for _, res := range open[1:] {
		if list := events(t, res, nil); len(list) == 0 || list[len(list)-1].kind != "end" {
			t.Errorf("a client does not see the end: %+v", list)
		}
	}
}

// A client that does not read is disconnected, and its slot is free again.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "shop", 1)
	p.Wait()
	s := start(t, func(c *web.Config) { c.Streams, c.WriteTime = 1, 100*time.Millisecond }, p)
	begun := s.watch.Until(t, "shop", journal.EventStarted, 1)
	records, err := p.Store.Find(t.Context(), journal.Query{Run: begun.Run})
	if err != nil {
		t.Fatal(err)
	}
	folder, err := journal.OpenFolder(records[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 { // more than the socket buffers
		if err := folder.Append(journal.Event{Kind: journal.EventAgent, Run: begun.Run, Text: strings.Repeat("x", 16<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	path := "/v1/projects/shop/runs/" + begun.Run + "/events"
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil { // the stream has its slot
		t.Fatal(err)
	}
	servicetest.Eventually(t, func() bool { return s.do(http.MethodGet, path).StatusCode == http.StatusOK })
	p.Go()
}

func TestListen(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0", "example.com:0"} {
		if l, err := web.Listen(t.Context(), address, ""); !errors.Is(err, web.ErrNeedsToken) {
			t.Errorf("%s without a token: %v, %v", address, l, err)
		}
	}
	for _, address := range []string{"", "80", "localhost"} {
		if l, err := web.Listen(t.Context(), address, "token"); err == nil || errors.Is(err, web.ErrNeedsToken) {
			t.Errorf("%q: %v, %v", address, l, err)
		}
	}
	l, err := web.Listen(t.Context(), "0.0.0.0:0", "token")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()

	path := filepath.Join(t.TempDir(), "api.sock")
	if l, err = web.Listen(t.Context(), "unix:"+path, ""); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if other, err := web.Listen(t.Context(), "unix:"+path, ""); err == nil {
		t.Errorf("two listen: %v", other)
	}
	_ = l.Close()
	// The socket of a killed process. This one never listened: a child process that another test starts at this moment
	// inherits a copy of the socket until its exec, and would keep listening.
	dead, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = unix.Bind(dead, &unix.SockaddrUnix{Name: path})
	if err = errors.Join(err, unix.Close(dead)); err != nil {
		t.Fatal(err)
	}
	if l, err = web.Listen(t.Context(), "unix:"+path, ""); err != nil {
		t.Fatalf("after a process that was killed: %v", err)
	}
	_ = l.Close()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the end: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := web.Listen(t.Context(), "unix:"+path, ""); err == nil {
		t.Errorf("over a file: %v", l)
	}
}
