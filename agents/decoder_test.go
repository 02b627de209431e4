package agents_test

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
)

func FuzzClaudeDecoder(f *testing.F) {
	fuzzDecoder(f, agents.Claude{}, "claude")
}

func FuzzCodexDecoder(f *testing.F) {
	fuzzDecoder(f, agents.Codex{}, "codex")
}

// fuzzDecoder checks the invariants of any stream: no panic, every unknown line is counted, memory is bounded, the session can
// be resumed, and a status other than 0 is a failure.
func fuzzDecoder(f *testing.F, a agents.Agent, folder string) {
	for _, r := range loadRecordings(f, folder, "*") {
		if len(r.stdout) < 4<<10 {
			f.Add(r.stdout, r.ending.ExitCode)
		}
	}
	for _, lines := range [][]string{
		{claudeText, claudeTool, claudeNested, claudeDone},
		{codexItem("started", `"id":"a","type":"command_execution","command":["go","test"]`), codexDone},
	} {
		f.Add([]byte(strings.Join(lines, "\n")), 0)
	}
	f.Add([]byte("{\"type\":\"assistant\"}\n[]\n\xff{\"type\":\"result\"}"), 0)
	f.Fuzz(func(t *testing.T, stream []byte, exit int) {
		d := a.NewDecoder()
		unknown := 0
		for line := range bytes.SplitSeq(stream, []byte("\n")) {
			for _, e := range d.Line(line) {
				if e.Kind == agents.EventUnknown {
					unknown++
				}
				if kept := len(e.Name) + len(e.Detail) + len(e.Message) + len(e.Session); kept > 4096 {
					t.Fatalf("event of %d bytes beside its text", kept)
				}
				if e.Kind != agents.EventMessage && (len(e.Text) > 4096 || strings.ContainsAny(e.Text, "\n\x1b\u202e")) {
					t.Fatalf("text of %s event is not one harmless line: %q", e.Kind, e.Text)
				}
			}
		}
		report := d.Finish(agents.Ending{ExitCode: exit})
		if report.Unknown != unknown || exit != 0 && report.Failure == nil {
			t.Fatalf("%d unknown, exit %d: %+v", unknown, exit, report)
		}
		if u := report.Usage; u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0 || !(u.CostUSD >= 0) {
			t.Fatalf("usage %+v", u)
		}
		if report.Session != "" {
			if _, err := a.Invocation(agents.Request{Prompt: "x", Session: report.Session}); err != nil {
				t.Fatalf("session cannot be resumed: %v", err)
			}
		}
	})
}

// TestHostileLines: arrays of very many small elements cost no more memory than they have bytes.
func TestHostileLines(t *testing.T) {
	for name, c := range map[string]struct {
		agent        agents.Agent
		before, part string
		after        string
	}{
		"claude content": {agents.Claude{}, `{"type":"assistant","message":{"id":"m","content":[{}`, `,{}`, `]}}`},
		"claude errors":  {agents.Claude{}, `{"type":"result","subtype":"x","errors":["a"`, `,"a"`, `]}`},
		"claude denials": {agents.Claude{}, `{"type":"result","subtype":"success","permission_denials":[{}`, `,{}`, `]}`},
		"claude input":   {agents.Claude{}, `{"type":"assistant","message":{"content":[{"type":"tool_use","input":[0`, `,[]`, `]}]}}`},
		"codex changes":  {agents.Codex{}, `{"type":"item.completed","item":{"type":"file_change","changes":[{}`, `,{}`, `]}}`},
		"codex command":  {agents.Codex{}, `{"type":"item.completed","item":{"type":"command_execution","command":[""`, `,""`, `]}}`},
	} {
		line := []byte(c.before + strings.Repeat(c.part, 2<<20/len(c.part)) + c.after)
		d := c.agent.NewDecoder()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		events := d.Line(line)
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 2<<20 || len(events) > 300 {
			t.Errorf("%s: %d MiB allocated, %d events for a line of 2 MiB", name, allocated>>20, len(events))
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, a := range []struct {
		agent  agents.Agent
		folder string
		bulk   func(int) []byte
	}{{agents.Claude{}, "claude", claudeBulk}, {agents.Codex{}, "codex", codexBulk}} {
		streams := map[string][]byte{"tool output": a.bulk(4 << 20)}
		for _, name := range []string{"multi", "large"} {
			streams[name] = loadRecordings(b, a.folder, name)[0].stdout
		}
		for name, stream := range streams {
			b.Run(a.agent.Name()+"/"+strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
				lines := bytes.Split(stream, []byte("\n"))
				b.SetBytes(int64(len(stream)))
				b.ReportAllocs()
				for b.Loop() {
					d := a.agent.NewDecoder()
					for _, line := range lines {
						d.Line(line)
					}
					d.Finish(agents.Ending{})
				}
			})
		}
	}
}
