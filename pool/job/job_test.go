package job_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
)

// A missing part is an error that names it.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	none := sandboxes.NewNone(sandboxes.NoneConfig{})
	for want, config := range map[string]run.Config{
		"Repo, Store, Sandboxes": {},
		"Repo, Store": {
			Sandboxes: none, Prompt: prompt.Prompt{Inline: "x"},
			Agent: agents.Command{}, Options: agents.Options{Command: []string{"true"}},
		},
		"Agent": {Sandboxes: none, Prompt: prompt.Prompt{Inline: "x"}},
	} {
		if _, err := (job.Job{Run: config}).Do(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, argv := range [][]string{nil, {""}, {"", "x"}, {"echo", "a\x00b"}} {
		j := job.Job{Run: run.Config{Sandboxes: none}, Command: &run.Command{Argv: argv}}
		if err := j.Check(); err == nil || !strings.Contains(err.Error(), "Command") {
			t.Errorf("%q: %v", argv, err)
		}
	}
	if err := (job.Job{Run: run.Config{Sandboxes: none}, Command: &run.Command{Argv: []string{"true", ""}}}).Check(); err != nil {
		t.Error(err)
	}
	if err := (job.Job{}).Check(); err == nil || !strings.Contains(err.Error(), "Sandboxes") {
		t.Error(err)
	}
}
