package agenttest

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
)

// grease mixes lines that no version prints today into a successful run. They must not change its meaning.
func (s Subject) grease(t *testing.T) {
	t.Parallel()
	if !s.Silent { // every line is prose
		return
	}
	oddLines := []string{
		`{"type":"from_the_future","x":[{"y":1}]}`, `{"type":5}`, `{"type":["assistant"]}`, `{}`, `[]`, `null`, `7`,
		`"text"`, `not json`, `{"type":"assistant"`, "{\"type\":\"\xff\xfe\"}",
		`{"type":"assistant","message":7}`, `{"type":"item.completed","item":"x"}`, `{"type":`, `{"type"}`, "\x00\x01",
		`{"type":"x"}{"type":"y"}`, "\ufeff{}", strings.Repeat("[", 200_000), strings.Repeat(`{"a":`, 200_000),
		`{"type":"` + strings.Repeat("z", 1<<20) + `"}`, strings.Repeat(`\"`, 300_000), "{\"" + strings.Repeat(`\`, 300_000),
	}
	for _, line := range s.Stream {
		for cut := range 20 {
			oddLines = append(oddLines, line[:len(line)*cut/20])
		}
	}
	plainDecoder := s.Agent.NewDecoder()
	greasedDecoder := s.Agent.NewDecoder()
	var want, got []agents.Event
	unknownEvents, oddCount := 0, 0
	feed := func(line string) {
		for _, e := range greasedDecoder.Line([]byte(line)) {
			if e.Kind == agents.EventUnknown {
				unknownEvents++
				if len(e.Text) > 2048 || len(e.Name) > 2048 {
					t.Errorf("unknown event keeps %d bytes", len(e.Text)+len(e.Name))
				}
				continue
			}
			got = append(got, e)
		}
	}
	for i, line := range s.Stream {
		want = append(want, plainDecoder.Line([]byte(line))...)
		for _, o := range oddLines[i*len(oddLines)/len(s.Stream) : (i+1)*len(oddLines)/len(s.Stream)] {
			oddCount += min(len(strings.TrimSpace(o)), 1)
			feed(o)
		}
		feed(line)
	}
	a, b := plainDecoder.Finish(agents.Ending{}), greasedDecoder.Finish(agents.Ending{})
	if !slices.Equal(want, got) {
		t.Errorf("grease changed the events:\n%+v\nwant\n%+v", got, want)
	}
	if b.Unknown != unknownEvents || unknownEvents != oddCount {
		t.Errorf("%d odd lines, %d shown, %d counted", oddCount, unknownEvents, b.Unknown)
	}
	if a.Session != b.Session || a.Usage != b.Usage || (a.Failure == nil) != (b.Failure == nil) {
		t.Errorf("grease changed the report: %+v, want %+v", b, a)
	}
}

// aliasing passes every line in one buffer that is overwritten after the call, as package loop may do.
func (s Subject) aliasing(t *testing.T) {
	t.Parallel()
	var want, got []agents.Event
	a, b := s.Agent.NewDecoder(), s.Agent.NewDecoder()
	buf := make([]byte, 0, 1<<20)
	for _, line := range s.Stream {
		want = append(want, a.Line([]byte(line))...)
		buf = append(buf[:0], line...)
		got = append(got, b.Line(buf)...)
		for i := range buf {
			buf[i] = '#'
		}
	}
	if !slices.Equal(want, got) {
		t.Errorf("events change with the buffer:\n%+v\nwant\n%+v", got, want)
	}
	x, y := a.Finish(agents.Ending{}), b.Finish(agents.Ending{})
	if x.Session != y.Session || !bytes.Equal(x.Structured, y.Structured) {
		t.Errorf("report changes with the buffer: %+v, want %+v", y, x)
	}
}

// bulk decodes 16 MB of tool output, in lines of up to 8 MB, and checks how much memory that allocates. It does not run in
// parallel with other tests, whose memory it would measure.
func (s Subject) bulk(t *testing.T) {
	if s.Bulk == nil {
		return
	}
	const total, line, maxAllocated = 16 << 20, 8 << 20, 5 << 18
	long, short := s.Bulk(line), s.Bulk(1000)
	d := s.Agent.NewDecoder()
	before := memory()
	for range total / line {
		for _, e := range d.Line(long) {
			if e.Kind == agents.EventUnknown || e.Kind == agents.EventMessage {
				t.Fatalf("tool output became %+v", e)
			}
		}
		d.Line(short)
	}
	after := memory()
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > maxAllocated {
		t.Errorf("decoding %d MiB of a tool's output allocated %d KiB, at most %d are allowed: do not copy it", total>>20, allocated>>10, maxAllocated>>10)
	}
	runtime.KeepAlive(d)
}

func memory() (m runtime.MemStats) {
	runtime.ReadMemStats(&m)
	return m
}

// mutations damages the run in many ways; every unknown line must be shown and counted, and every event bounded.
func (s Subject) mutations(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		d := s.Agent.NewDecoder()
		shown := 0
		for _, line := range mutate(s.Stream, seed) {
			for _, e := range d.Line([]byte(line)) {
				if e.Kind == agents.EventUnknown {
					shown++
				}
				if len(e.Detail) > 2048 || len(e.Name) > 2048 || len(e.Message) > 2048 || len(e.Session) > 2048 {
					t.Errorf("seed %d: event of unbounded size: %.200q", seed, e)
				}
			}
		}
		if r := d.Finish(agents.Ending{ExitCode: 1}); r.Failure == nil || r.Unknown != shown {
			t.Errorf("seed %d: %d shown, report %+v", seed, shown, r)
		}
	}
}

// mutate damages lines; the same seed does the same damage.
func mutate(lines []string, seed uint64) []string {
	rnd := rand.New(rand.NewPCG(seed, 1))
	grease := []string{`,"type":null`, `{`, `}`, `[`, `]`, `"`, `:`, `,`, `\`, "\x00", "\xff", `1e999`, `-`}
	out := slices.Clone(lines)
	for i, line := range out {
		for range 1 + rnd.IntN(4) {
			at := rnd.IntN(len(line) + 1)
			end := min(at+rnd.IntN(9), len(line))
			line = line[:at] + grease[rnd.IntN(len(grease))] + line[end:]
		}
		out[i] = line
	}
	return out
}
