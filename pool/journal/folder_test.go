package journal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

func read(t *testing.T, dir string) []journal.Event {
	t.Helper()
	var out []journal.Event
	if err := journal.ReadEvents(dir, func(e journal.Event) error { out = append(out, e); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// Events are read as they were written, also if the folder was opened twice. After Close nothing is written.
func TestEventsRoundTrip(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	if got := read(t, dir); len(got) != 0 {
		t.Errorf("events of no folder: %+v", got)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	want := []journal.Event{
		{Seq: 1, Pool: "p", Time: at, Kind: journal.EventStarted, Run: "r", Key: "k", Title: "t\n☃\x00", Attempt: 2, Branch: "b"},
		{Seq: 2, Time: at, Kind: journal.EventGate, Check: &loop.Check{Command: "c", ExitCode: 1, Tail: strings.Repeat("x", 100<<10)}},
		{Seq: 3, Time: at, Kind: journal.EventAgent, Iteration: 1, Source: "tool", Text: "</script>\u2028\"\\"},
		{Seq: 4, Time: at, Kind: journal.EventSkipped, Skip: &journal.Skip{Code: journal.SkipRetry, Until: at, Attempt: 1, Outcome: journal.Failed}},
		{Seq: 5, Time: at, Kind: "a-kind-of-later", Count: 3, Stage: journal.StageWork, Commits: 1},
		{
			Seq: 6, Time: at, Kind: journal.EventEnded, Outcome: journal.Succeeded, Reason: &journal.Reason{Code: "c", Detail: "d"},
			Usage: &agents.Usage{Input: 1, CostUSD: 0.25}, Elapsed: 1.5,
		},
	}
	for _, part := range [][]journal.Event{want[:3], want[3:]} {
		f, err := journal.OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range part {
			if err := f.Append(e); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Append(journal.Event{Kind: journal.EventWarning}); err != nil {
			t.Errorf("append to a closed folder: %v", err)
		}
	}
	if diff := cmp.Diff(want, read(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	errEnough := errors.New("enough")
	n := 0
	if err := journal.ReadEvents(dir, func(journal.Event) error { n++; return errEnough }); !errors.Is(err, errEnough) || n != 1 {
		t.Errorf("%d events, %v", n, err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder %v, %v", info.Mode(), err)
	}
}

// The first event after a crash is read although the crash has cut the line before it.
func TestEventsAfterATornLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, after string }{
		"torn":  {`{"kind":"agent"}` + "\n" + `{"kind":"ag`, `{"kind":"agent"}` + "\n" + `{"kind":"ag` + "\n"},
		"whole": {`{"kind":"agent"}` + "\n", `{"kind":"agent"}` + "\n"},
		"empty": {"", ""},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, journal.EventsFile)
		if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := journal.OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		now := journal.Event{Seq: 1, Kind: journal.EventRecovered}
		if err := errors.Join(f.Append(now), f.Close()); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != c.after+line(t, now) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if got := read(t, dir); got[len(got)-1].Kind != now.Kind {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// If a full disk cuts a line, only the event on that line is lost.
func TestEventsAfterAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := journal.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []journal.Event{{Seq: 1, Kind: journal.EventStarted}, {Seq: 3, Kind: journal.EventWarning}, {Seq: 4, Kind: journal.EventEnded}}
	disk, err := os.OpenFile(filepath.Join(dir, journal.EventsFile), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Append(want[0])
	for _, e := range want[1:] {
		_, torn := disk.WriteString(`{"seq":2,"kind":"ag`)
		err = errors.Join(err, torn, f.Append(e))
	}
	if err := errors.Join(err, disk.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, read(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A line is complete even if others write at the same time.
func TestEventsOfManyWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := journal.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 4, 50
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range each {
				e := journal.Event{Seq: uint64(n), Kind: journal.EventAgent, Run: fmt.Sprint(w), Text: strings.Repeat("x", 5000)}
				if err := f.Append(e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	next := map[string]uint64{}
	for _, e := range read(t, dir) {
		if e.Seq != next[e.Run] {
			t.Fatalf("writer %s: event %d, want %d", e.Run, e.Seq, next[e.Run])
		}
		next[e.Run]++
	}
	if len(next) != writers || next["0"] != each {
		t.Errorf("%v", next)
	}
}

// FuzzReadEvents puts arbitrary text between two events, such as a line cut by a crash: both events are read without an
// error.
func FuzzReadEvents(f *testing.F) {
	for _, s := range []string{"", "\n", "{", `{"kind":"agent"`, "null\n", `{"kind":""}`, "\x00\xff", `[]`, `{"kind":"x","time":1}`, "{}\r\n{}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, garbage []byte) {
		dir := t.TempDir()
		first, last := journal.Event{Seq: 1, Kind: journal.EventStarted}, journal.Event{Seq: 2, Kind: journal.EventEnded}
		text := line(t, first) + string(garbage) + "\n" + line(t, last)
		if err := os.WriteFile(filepath.Join(dir, journal.EventsFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := read(t, dir)
		if len(got) < 2 || cmp.Diff(first, got[0]) != "" || cmp.Diff(last, got[len(got)-1]) != "" {
			t.Errorf("%q: %+v", garbage, got)
		}
		if len(got)-2 > strings.Count(string(garbage), "\n")+1 {
			t.Errorf("%q: %d events", garbage, len(got))
		}
	})
}

func line(t *testing.T, e journal.Event) string {
	t.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// The process that works the run sees a request to stop. No file of the folder can be outside of it.
func TestStopAndFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	rec := journal.Record{Run: journal.Run{Key: "k", Dir: dir}}
	if err := journal.RequestStop(rec); err != nil || !journal.StopRequested(dir) {
		t.Errorf("a run that has not begun: %v", err)
	}
	if err := journal.StopObeyed(rec); err != nil || journal.StopRequested(dir) {
		t.Errorf("the request to such a run stays: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("its folder stays")
	}
	f, err := journal.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if journal.StopRequested(dir) {
		t.Error("nobody has asked")
	}
	for range 2 {
		if err := journal.RequestStop(rec); err != nil {
			t.Fatal(err)
		}
	}
	if !journal.StopRequested(dir) {
		t.Error("the request is not seen")
	}
	for range 2 {
		if err := f.StopObeyed(); err != nil || journal.StopRequested(dir) {
			t.Errorf("the request stays: %v", err)
		}
	}
	w, err := f.Create("../../outside.log")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "outside.log")); err != nil {
		t.Error(err)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"20260101-1", "20260102-1", "20260103-1", "20260103-2"} {
		if err := os.MkdirAll(filepath.Join(dir, name, "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "0-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"20260102-2", "20260103-3"} { // runs that were asked to stop before they had begun, or after the end
		if err := journal.RequestStop(journal.Record{Run: journal.Run{Dir: filepath.Join(dir, name)}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, keep := range []int{9, 2, 2} {
		if err := journal.Prune(dir, keep, 1); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(dir)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if want := "0-file 20260103-1 20260103-2 20260103-3"; err != nil || strings.Join(names, " ") != want {
		t.Errorf("left %v, %v", names, err)
	}
}

// Old folders are also deleted if the newer ones are large. The newest stays, whatever its size.
func TestPruneBySize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, size := range map[string]int{"1": 0, "2": 60, "3": 50, "4": 50} {
		if err := os.MkdirAll(filepath.Join(dir, name, "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "deep", "log"), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		most int64
		want string
	}{{160, "1 2 3 4"}, {159, "3 4"}, {10, "4"}} {
		if err := journal.Prune(dir, 9, step.most); err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadDir(dir)
		var names []string
		for _, e := range left {
			names = append(names, e.Name())
		}
		if err != nil || strings.Join(names, " ") != step.want {
			t.Errorf("%d bytes: left %v, %v", step.most, names, err)
		}
	}
}

// A reader continues at the offset that came with the last event, and an incomplete line is not lost.
func TestReadEventsFrom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := journal.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var at int64
	read := func() (texts []string) {
		t.Helper()
		err := journal.ReadEventsFrom(dir, at, func(e journal.Event, next int64) error {
			texts, at = append(texts, e.Text), next
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return texts
	}
	add := func(text string) {
		t.Helper()
		if err := f.Append(journal.Event{Kind: journal.EventAgent, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	add("one")
	add("two")
	if got := read(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("first: %q", got)
	}
	cut, err := f.Create(journal.EventsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer cut.Close()
	if _, err := cut.Write([]byte(`{"kind":"agent","te`)); err != nil {
		t.Fatal(err)
	}
	if got := read(); len(got) != 0 {
		t.Errorf("half a line: %q", got)
	}
	if _, err := cut.Write([]byte("xt\":\"three\"}\n")); err != nil {
		t.Fatal(err)
	}
	if got := read(); !slices.Equal(got, []string{"three"}) {
		t.Errorf("after it: %q", got)
	}
	at = -5
	if got := read(); len(got) != 3 {
		t.Errorf("from before the beginning: %q", got)
	}
	at = 1 << 40
	if got := read(); len(got) != 0 {
		t.Errorf("from behind the end: %q", got)
	}
}

// The event of a beginning command names the place of its output, also if a file is used again.
func TestBeginSaysWhereTheOutputIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := journal.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []journal.Event{{Kind: journal.EventGate, Text: "a"}, {Kind: journal.EventGate, Check: &loop.Check{}}, {Kind: journal.EventAgent}, {Kind: journal.EventSetup, Text: "b"}} {
		if e.Begins() {
			w, err := f.Create("gate-0-1.log")
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if _, err := w.Write([]byte("four")); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Append(journal.Event{Kind: journal.EventGate, Text: "c"}); err != nil { // its file could not be made
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range read(t, dir) {
		got = append(got, fmt.Sprintf("%s %s %d", e.Kind, e.Log, e.LogFrom))
	}
	if want := []string{"gate gate-0-1.log 0", "gate  0", "agent  0", "setup gate-0-1.log 4", "gate  0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The event log has a limit, which only the end of a run may exceed. A warning takes the place of the first event that is lost.
func TestEventsAreLimited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := journal.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(filepath.Join(dir, journal.EventsFile), journal.EventsLimit-100); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 1000)
	for n, e := range []journal.Event{
		{Seq: 1, Kind: journal.EventAgent, Text: long}, {Seq: 2, Kind: journal.EventNote}, {Seq: 3, Kind: journal.EventEnded},
	} {
		if err := f.Append(e); (err != nil) != (n == 1) {
			t.Errorf("event %d: %v", n, err)
		}
	}
	var kinds []journal.EventKind
	err = journal.ReadEventsFrom(dir, journal.EventsLimit-100, func(e journal.Event, _ int64) error { kinds = append(kinds, e.Kind); return nil })
	if want := []journal.EventKind{journal.EventWarning, journal.EventEnded}; err != nil || !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q; %v", kinds, want, err)
	}
}
