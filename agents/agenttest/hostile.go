package agenttest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
)

// hostile replaces each text of the run by a long text of several lines with terminal control sequences. Events and reports,
// except prose, may contain only one harmless line of it.
func (s Subject) hostile(t *testing.T) {
	t.Parallel()
	const bad = "\x1b[31mred\nnext\u202e"
	for n, line := range s.Stream {
		_, count := replace(line, -1, "")
		for at := range count {
			stream := slices.Clone(s.Stream)
			stream[n], _ = replace(line, at, bad+strings.Repeat("x", 4000))
			for _, text := range s.eventTexts(stream) {
				if text != agents.Clip(text, 1000) {
					t.Errorf("a text of line %d is shown as it came: %.80q of %.300q; see agents.Clip", n+1, text, stream[n])
				}
			}
		}
	}
}

// eventTexts returns the texts of a stream's events and report, except prose.
func (s Subject) eventTexts(stream []string) (list []string) {
	d := s.Agent.NewDecoder()
	for _, line := range stream {
		for _, e := range d.Line([]byte(line)) {
			list = append(list, e.Name, e.Detail, e.Message, e.Session)
			if e.Kind != agents.EventMessage {
				list = append(list, e.Text)
			}
		}
	}
	r := d.Finish(agents.Ending{ExitCode: 1})
	list = append(list, r.Session, r.Model)
	for _, denied := range r.Denied {
		list = append(list, denied.Tool, denied.Detail)
	}
	if r.Failure != nil {
		list = append(list, r.Failure.Message)
	}
	return list
}

// replace replaces text number at in a line of JSON, and returns the number of texts.
func replace(line string, at int, text string) (changed string, count int) {
	var root any
	if json.Unmarshal([]byte(line), &root) != nil {
		return line, 0
	}
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			if count++; count-1 == at {
				return text
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				v[name] = walk(v[name])
			}
		}
		return v
	}
	out, err := json.Marshal(walk(root))
	if err != nil {
		panic(err) // the value was JSON before
	}
	return string(out), count
}
