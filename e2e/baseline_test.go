package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// While the gate runs on the base, another terminal can look at the run and stop it.
func TestLookAndStopDuringTheBaseline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, r := newScene(t, doIt), newRepository(t)
	keys := r.backlog(t, 1)
	gate := "echo checking; touch " + dir + "/begun; exec sleep 1000"
	p := s.start(t, r, nil, "work", "--setup", "echo setting up", "--gate", gate)
	awaitFile(t, filepath.Join(dir, "begun"))
	for command, want := range map[string][]string{
		"show": {"attempt 1, running", "now         baseline: gate: " + gate + ", for ", "0 on ralph/" + keys[0] + ", from main"},
		"logs": {"the gate runs on main first", "setup       echo setting up: exit status 0\n", "setting up\n", "gate        " + gate},
	} {
		look := s.start(t, r, nil, command, keys[0])
		if got := look.end(t); got != 0 {
			t.Errorf("%s: status %d", command, got)
		}
		for _, w := range want {
			if !strings.Contains(look.out.String(), w) {
				t.Errorf("%s does not say %q:\n%s", command, w, look.out.String())
			}
		}
	}
	follow := s.start(t, r, nil, "logs", "-f", keys[0])
	stop := s.start(t, r, nil, "stop", keys[0])
	if got := stop.end(t); got != 0 || !strings.Contains(stop.out.String(), "works it again, unless you remove its label no-human (ralph edit ") {
		t.Errorf("stop: status %d\n%s", got, stop.out.String())
	}
	if got := follow.end(t); got != 0 || !strings.Contains(follow.out.String(), "ended       interrupted") {
		t.Errorf("logs -f: status %d\n%s", got, follow.out.String())
	}
	p.end(t)
	if n := s.starts(t)[keys[0]]; n != 0 || strings.Contains(p.out.String(), "started") {
		t.Errorf("the agent was started %d times:\n%s", n, p.out.String())
	}
	s.clean(t, r)
}

// Closing an issue ends its run at once, like `ralph stop`, and not only at the run's next poll of the issue.
func TestCloseEndsTheRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, r := newScene(t, waiting(dir, "say: hello")), newRepository(t)
	keys := r.backlog(t, 1)
	p := s.start(t, r, nil, "work")
	awaitFile(t, filepath.Join(dir, keys[0]))
	closing := s.start(t, r, nil, "close", keys[0])
	if got := closing.end(t); got != 0 || !strings.Contains(closing.out.String(), "to end. `ralph logs -f "+keys[0]+"`") {
		t.Errorf("close: status %d\n%s", got, closing.out.String())
	}
	p.end(t)
	if !strings.Contains(p.out.String(), "superseded") || r.commits(t, "ralph/"+keys[0]) != 1 {
		t.Errorf("how it ended:\n%s", p.out.String())
	}
	s.clean(t, r)
}
