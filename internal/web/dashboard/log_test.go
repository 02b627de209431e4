package dashboard_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/web/dashboard"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

const events = journal.EventsFile

// write writes a file into a new run folder.
func write(t *testing.T, name string, text []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// said returns a line of the events file.
func said(t *testing.T, text string) []byte {
	t.Helper()
	data, err := json.Marshal(journal.Event{Kind: journal.EventAgent, Time: time.Unix(1, 0), Source: "message", Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}

func texts(p dashboard.LogPage) (out []string) {
	for _, l := range p.Lines {
		out = append(out, l.Text)
	}
	return out
}

// Paging forward or backward through a log shows each line once.
func TestLogIsReadInParts(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	const n = 5*dashboard.LogShown + 7
	for i := range n {
		log.Write(said(t, fmt.Sprintf("line %d %s", i, strings.Repeat("x", i*7%3000))))
	}
	log.WriteString(`{"kind":"agent","te`) // cut by a crash
	dir := write(t, events, log.Bytes())
	number := func(text string) (i int) {
		if _, err := fmt.Sscanf(text, "line %d", &i); err != nil {
			t.Fatal(text, err)
		}
		return i
	}
	next := 0
	for at := int64(0); ; {
		p, err := dashboard.Part(dir, events, at, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts(p) {
			if number(text) != next {
				t.Fatalf("forward: %d, want %d", number(text), next)
			}
			next++
		}
		if !p.Later() {
			break
		}
		at = p.To
	}
	if next != n {
		t.Errorf("forward: %d lines, want %d", next, n)
	}
	for end := int64(-1); ; {
		p, err := dashboard.Before(dir, events, end)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts(p) {
			next = min(next, number(text))
		}
		if first := texts(p)[0]; number(first) != next || len(p.Lines) > dashboard.LogShown {
			t.Fatalf("backward: %d lines from %s", len(p.Lines), first)
		}
		if !p.Earlier() {
			break
		}
		end = p.From
	}
	if next != 0 {
		t.Errorf("backward: it ends at %d", next)
	}
	middle, err := dashboard.Part(dir, events, 12345, "")
	if err != nil || middle.From < 12345 || len(middle.Lines) == 0 {
		t.Errorf("from the middle of a line: from %d, %d lines, %v", middle.From, len(middle.Lines), err)
	}
}

// A search continues where the last one ended, ignores case, and finds text that JSON escapes.
func TestLogIsSearched(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	for range 10 {
		log.Write(said(t, "nothing"))
	}
	log.Write(said(t, `He said "GO" <now> & then ü`))
	for log.Len() < dashboard.SearchRange+1<<20 {
		log.Write(said(t, strings.Repeat("y", 200<<10)))
	}
	log.Write(said(t, "a needle at the end"))
	dir := write(t, events, log.Bytes())
	for _, query := range []string{`"go"`, "<NOW> &", "then ü", "message he"} {
		p, err := dashboard.Part(dir, events, 0, strings.ToLower(query))
		if err != nil || query == "message he" == (len(p.Lines) == 1) { // text with other text between its parts does not match
			t.Errorf("%q: %d lines, %v", query, len(p.Lines), err)
		}
	}
	first, err := dashboard.Part(dir, events, 0, "needle")
	if err != nil || len(first.Lines) > 0 || !first.Later() || first.To > dashboard.SearchRange+1<<20 {
		t.Fatalf("the first part: %d lines, to %d of %d, %v", len(first.Lines), first.To, first.Size, err)
	}
	second, err := dashboard.Part(dir, events, first.To, "needle")
	if err != nil || len(second.Lines) != 1 || second.Later() {
		t.Errorf("the rest: %d lines, to %d of %d, %v", len(second.Lines), second.To, second.Size, err)
	}
}

// A line as long as the file is cut, and the page stays small.
func TestLongLine(t *testing.T) {
	t.Parallel()
	dir := write(t, "agent-1.jsonl", append(bytes.Repeat([]byte("z"), 20<<20), "\nshort\n"...))
	p, err := dashboard.Part(dir, "agent-1.jsonl", 0, "")
	if err != nil || len(p.Lines) != 1 || len(p.Lines[0].Text) > 5<<10 {
		t.Errorf("%d lines, %v", len(p.Lines), err)
	}
	for at := p.To; p.Later(); at = p.To { // the rest of the line is skipped in parts
		if p, err = dashboard.Part(dir, "agent-1.jsonl", at, ""); err != nil || p.To <= at {
			t.Fatalf("after it: %+v, %v", p, err)
		}
	}
	if got := texts(p); len(got) != 1 || got[0] != "short" {
		t.Errorf("after it: %q", got)
	}
}

// Events in lines longer than the read limit are shown in part, both forward and backward.
func TestLongEvents(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long \"\u2028\" ", 400<<10)
	whole, err := json.Marshal(journal.Event{Kind: journal.EventGate, Check: &loop.Check{Command: "make test", ExitCode: 2, Tail: long}})
	if err != nil {
		t.Fatal(err)
	}
	log := slices.Concat(said(t, "first"), said(t, long), whole, []byte("\n"))
	dir := write(t, events, log)
	var down []string
	for at := int64(0); at < int64(len(log)); {
		p, err := dashboard.Part(dir, events, at, "")
		if err != nil || p.To <= at {
			t.Fatalf("%+v, %v", p, err)
		}
		down, at = append(down, texts(p)...), p.To
	}
	var up []string
	for end := int64(-1); end != 0; {
		p, err := dashboard.Before(dir, events, end)
		if err != nil || p.From == end {
			t.Fatalf("%+v, %v", p, err)
		}
		up, end = append(texts(p), up...), p.From
	}
	for name, list := range map[string][]string{"down": down, "up": up} {
		if len(list) != 3 || list[0] != "first" || !strings.HasPrefix(list[1], `long "`) || !strings.HasPrefix(list[2], "make test: exit status 2\nlong") {
			t.Errorf("%s: %d lines: %.200q", name, len(list), list)
		}
	}
}

// Only files of the run's folder are read, and links are not followed.
func TestOnlyLogsAreRead(t *testing.T) {
	t.Parallel()
	dir := write(t, events, nil)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "../x", "/etc/passwd", ".", "..", "none"} {
		if _, err := dashboard.Part(dir, name, 0, ""); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, dir := range []string{dir, filepath.Join(dir, "none")} {
		if p, err := dashboard.Part(dir, events, 99, ""); err != nil || len(p.Lines) > 0 {
			t.Errorf("%+v, %v", p, err)
		}
	}
}

func FuzzLog(f *testing.F) {
	f.Add([]byte(`{"kind":"gate","check":{"command":"x"}}`+"\n\n\r\n{"), int64(3), "x")
	f.Fuzz(func(t *testing.T, data []byte, at int64, query string) {
		dir := write(t, events, data)
		for _, name := range []string{events} {
			p, err := dashboard.Part(dir, name, at, strings.ToLower(query))
			if err != nil || p.From > p.Size || p.To > p.Size || p.To < min(at, p.Size) && at > 0 {
				t.Errorf("%+v, %v", p, err)
			}
			if p, err := dashboard.Before(dir, name, at); err != nil || p.From > p.To {
				t.Errorf("before: %+v, %v", p, err)
			}
		}
	})
}

// The steps of a run are found anywhere in its log, but not inside untrusted text. No part of the log is read twice.
func TestSteps(t *testing.T) {
	t.Parallel()
	rec := longLog(t, dashboard.SearchRange+8<<20)
	var x dashboard.StepIndex
	look := func(want int, last string) {
		t.Helper()
		names, cut, err := x.Steps(rec)
		if err != nil || cut || len(names) != want || names[len(names)-1] != last {
			t.Fatalf("%d steps, want %d up to %s; cut %t, %v: %q", len(names), want, last, cut, err, names)
		}
	}
	const all = 2 + 20
	look(all, "publish")
	f, err := os.OpenFile(filepath.Join(rec.Dir, events), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		t.Fatal(err)
	}
	put := func(text string) {
		t.Helper()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteAt([]byte("x"), 0); err != nil { // the first line is no longer a step, but is not read again
		t.Fatal(err)
	}
	put(`{"kind":"iteration","iter`)
	look(all, "publish")
	put("ation\":77}\n")
	look(all+1, "iteration 77")
	put(strings.Repeat("z", 3<<20) + `"kind":"stage"` + "\n" + `{"kind":"stage","stage":"report"}` + "\n")
	look(all+2, "report")
	for range dashboard.StepsLogs { // evicts this log, so that it is read again
		if _, _, err := x.Steps(journal.Record{Run: journal.Run{Dir: write(t, events, nil)}}); err != nil {
			t.Fatal(err)
		}
	}
	look(all+1, "report")
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	look(all-1, "publish")
}

// Paging back over a line longer than a page reaches the beginning.
func TestBackOverLongLine(t *testing.T) {
	t.Parallel()
	dir := write(t, "agent-1.jsonl", append(append([]byte("first\n"), bytes.Repeat([]byte("z"), 5<<20)...), "\nlast\n"...))
	var first []string
	for end, pages := int64(-1), 0; end != 0; pages++ {
		p, err := dashboard.Before(dir, "agent-1.jsonl", end)
		if err != nil || p.From == p.To || pages > 10 {
			t.Fatalf("page %d: %+v, %v", pages, p, err)
		}
		end, first = p.From, texts(p)
	}
	if len(first) == 0 || first[0] != "first" {
		t.Errorf("%q", first)
	}
}
