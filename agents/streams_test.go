package agents_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
)

const (
	recordings = "testdata/streams"
	golden     = "testdata/streams.golden"
	signal     = "<promise>COMPLETE</promise>"
)

// TestRecordedStreams decodes every recorded run of the real programs. Their expected meanings are in streams.golden, one line per
// stream, reviewed by hand; RALPH_UPDATE_GOLDEN=1 rewrites it for the next review. Status 124 in a recording is that of the
// `timeout` program, which ended the agent.
func TestRecordedStreams(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	for _, a := range agents.Builtin()[:2] {
		folder := strings.TrimSuffix(a.Name(), "-code")
		for _, r := range loadRecordings(t, folder, "*") {
			fmt.Fprintf(&got, "%s/%s: %s\n", folder, r.name, summary(t, a.NewDecoder(), r))
		}
	}
	if os.Getenv("RALPH_UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("streams mean something else (-want +got):\n%s", diff)
	}
}

type recording struct {
	name   string
	stdout []byte
	ending agents.Ending
}

// loadRecordings reads the recordings of one agent that match the pattern: NAME.jsonl (two of 780 KB are compressed),
// NAME.rc (absent: 0) and NAME.stderr.
func loadRecordings(t testing.TB, folder, pattern string) []recording {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(recordings, folder, pattern+".jsonl*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings %s/%s: %v", folder, pattern, err)
	}
	var all []recording
	for _, path := range paths {
		name, _, _ := strings.Cut(filepath.Base(path), ".jsonl")
		beside := strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".jsonl")
		r := recording{name: name, stdout: readMaybeZipped(t, path)}
		if rc, err := os.ReadFile(beside + ".rc"); err == nil {
			if r.ending.ExitCode, err = strconv.Atoi(strings.TrimSpace(string(rc))); err != nil {
				t.Fatal(err)
			}
		}
		if stderr, err := os.ReadFile(beside + ".stderr"); err == nil {
			r.ending.StderrTail = string(stderr)
		}
		all = append(all, r)
	}
	return all
}

func readMaybeZipped(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(path, ".gz") {
		return data
	}
	unzip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(unzip); err != nil {
		t.Fatal(err)
	}
	return data
}

func summary(t *testing.T, d agents.Decoder, r recording) string {
	t.Helper()
	var latest, id string
	var messages, tools, retries, notices, unknown int
	for line := range bytes.SplitSeq(r.stdout, []byte("\n")) {
		for _, e := range d.Line(line) {
			switch e.Kind {
			case agents.EventMessage:
				if messages == 0 || e.Message != id {
					messages, id, latest = messages+1, e.Message, ""
				}
				latest += e.Text
			case agents.EventTool:
				tools++
			case agents.EventRetry:
				retries++
			case agents.EventNotice:
				notices++
			case agents.EventUnknown:
				unknown++
			}
		}
	}
	report := d.Finish(r.ending)
	if report.Unknown != unknown {
		t.Errorf("%s: report counts %d unknown, %d were shown", r.name, report.Unknown, unknown)
	}
	u := report.Usage
	s := fmt.Sprintf("session %.13q, %d messages, %d tools, %d retries, %d notices, %d unknown, signal %t, tokens %d/%d/%d/%d, $%.5f, latest %.40q",
		report.Session, messages, tools, retries, notices, unknown, strings.Contains(latest, signal),
		u.Input, u.Output, u.CacheRead, u.CacheWrite, u.CostUSD, latest)
	if report.Structured != nil {
		s += ", structured " + string(report.Structured)
	}
	for _, d := range report.Denied {
		s += fmt.Sprintf(", denied %s %q", d.Tool, d.Detail)
	}
	if f := report.Failure; f != nil {
		s += ", " + f.Error()
	}
	return s
}
