package agents_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
)

func TestParseChoice(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want agents.Choice
		err  string // part of it; empty: none
	}{
		{text: "codex", want: agents.Choice{Agent: "codex"}},
		{text: "claude-code:opus", want: agents.Choice{Agent: "claude-code", Model: "opus"}},
		{text: "codex:local/qwen:7", want: agents.Choice{Agent: "codex", Model: "local/qwen:7"}},
		{text: "", err: "not AGENT or AGENT:MODEL"},
		{text: ":opus", err: "not AGENT or AGENT:MODEL"},
		{text: "claude code:opus", err: "not AGENT or AGENT:MODEL"},
		{text: "codex:", err: "no model after the colon"},
		{text: "codex:-m", err: "no leading dash"},
		{text: "codex: gpt", err: "no blanks"},
		{text: "codex:" + strings.Repeat("x", 257), err: "at most 256"},
	}
	for _, tt := range tests {
		got, err := agents.ParseChoice(tt.text)
		if got != tt.want || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("ParseChoice(%q) = %+v, %v; want %+v, %q", tt.text, got, err, tt.want, tt.err)
		}
		if err == nil && got.String() != tt.text {
			t.Errorf("%+v is written %q, not %q", got, got.String(), tt.text)
		}
	}
}

func FuzzParseChoice(f *testing.F) {
	for _, seed := range []string{"codex", "claude-code:opus", "a:b:c", ":", "a:-b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := agents.ParseChoice(text); err == nil && c.String() != text {
			t.Errorf("%q is written back as %q", text, c)
		}
	})
}
