// Package agenttest is the conformance suite for agents: it tests the behaviour that package loop relies on.
//
// An agent's own tests call [Run] with a [Subject]. The suite starts no process and needs no network.
package agenttest

import (
	"cmp"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
)

// Subject is an agent with the data about it that the suite needs.
type Subject struct {
	Agent agents.Agent
	// Options are the minimal options that the agent accepts.
	Options agents.Options
	// Refused are options that Check must reject, keyed by a part of the error.
	Refused map[string]agents.Options
	// Stream is the output of a successful run with exit status 0. Unless a silent run succeeds, it is one JSON document per
	// line, or has another format in which a cut line is recognisable: the decoder must report each as an unknown line.
	Stream []string
	// Session is the session ID in Stream; empty for an agent without sessions.
	Session string
	// Silent is set if a run that prints nothing and exits 0 has failed, as for agents that report a result. Otherwise every
	// line counts as prose, and the test "grease" of unknown lines does nothing.
	Silent bool
	// Bulk returns a line with n bytes of a tool's output and no prose. The decoder must not copy them: decoding 16 MiB may
	// allocate 1.25 MiB.
	Bulk func(n int) []byte
}

// Run runs the suite.
func Run(t *testing.T, s Subject) {
	t.Run("command line", s.commandLine)
	t.Run("refusals", s.refusals)
	t.Run("environment", s.environment)
	t.Run("sessions", s.sessions)
	t.Run("endings", s.endings)
	t.Run("grease", s.grease)
	t.Run("mutations", s.mutations)
	t.Run("hostile texts", s.hostile)
	t.Run("the line is not kept", s.aliasing)
	t.Run("bulk", s.bulk)
}

func (s Subject) request() agents.Request {
	return agents.Request{Prompt: "Make the tests pass.", Options: s.Options}
}

func (s Subject) commandLine(t *testing.T) {
	t.Parallel()
	r := s.request()
	r.Prompt = strings.Repeat("- $(reboot) `x` --flag 'q' 漢字\n", 300_000/32)
	inv, err := s.Agent.Invocation(r)
	if err != nil {
		t.Fatalf("Invocation: %v", err)
	}
	if inv.Stdin != r.Prompt {
		t.Errorf("stdin has %d bytes that are not the prompt's %d", len(inv.Stdin), len(r.Prompt))
	}
	for _, arg := range inv.Argv {
		if strings.Contains(arg, "reboot") {
			t.Errorf("the prompt is in argv: %.60q", arg)
		}
	}
	if len(inv.Argv) == 0 || inv.Argv[0] == "" {
		t.Fatalf("argv %q names no program", inv.Argv)
	}

	again := s.request()
	again.Options.Args = []string{"--extra", "with blanks"}
	with, err := s.Agent.Invocation(again)
	if err != nil {
		t.Fatalf("Invocation: %v", err)
	}
	if want := append(slices.Clone(inv.Argv), again.Options.Args...); !slices.Equal(with.Argv, want) {
		t.Errorf("argv with extra arguments is %q, want %q", with.Argv, want)
	}
	if !s.Agent.Describe().Models {
		return
	}
	again.Options.Model = "model-7"
	if with, err = s.Agent.Invocation(again); err != nil || !strings.Contains(strings.Join(slices.Concat(with.Argv, with.Env), "\n"), "model-7") {
		t.Errorf("the model is neither in argv %q nor in the environment %q: %v", with.Argv, with.Env, err)
	}
}

func (s Subject) refusals(t *testing.T) {
	t.Parallel()
	if err := agents.Check(s.Agent, s.Options); err != nil {
		t.Errorf("Check refuses the least options: %v", err)
	}
	refused := map[string]agents.Options{}
	for name, o := range s.Refused {
		refused[name] = o
	}
	withEnv, withArgs := s.Options, s.Options
	withEnv.Env = []string{"NOVALUE"}
	withArgs.Args = []string{"a\x00b"}
	refused["environment"], refused["argument"] = withEnv, withArgs
	for name, o := range refused {
		err := agents.Check(s.Agent, o)
		if err == nil {
			t.Errorf("Check accepts what it must refuse: %s", name)
			continue
		}
		if message := err.Error(); !strings.Contains(message, name) || strings.Contains(message, "\n") {
			t.Errorf("error %q is not one line that names %s", message, name)
		}
		r := s.request()
		r.Options = o
		if _, err := s.Agent.Invocation(r); err == nil {
			t.Errorf("Invocation accepts what Check refuses: %s", name)
		}
	}
}

func (s Subject) environment(t *testing.T) {
	t.Parallel()
	plain, err := s.Agent.Invocation(s.request())
	if err != nil {
		t.Fatal(err)
	}
	r := s.request()
	r.Options.Env = []string{"RALPH_BRANCH=forged", "MINE=1"}
	for _, setting := range plain.Env { // the user's settings override the agent's own
		name, _, _ := strings.Cut(setting, "=")
		r.Options.Env = append(r.Options.Env, name+"=mine")
	}
	r.Vars = []string{"RALPH_BRANCH=ralph/7", "RALPH_ISSUE_TITLE=a=b\x00c", "RALPH_BIG=" + strings.Repeat("x", 1<<20)}
	inv, err := s.Agent.Invocation(r)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, setting := range inv.Env {
		name, value, ok := strings.Cut(setting, "=")
		if _, twice := env[name]; twice || !ok || strings.ContainsRune(setting, 0) || len(setting) > 128<<10 {
			t.Errorf("setting %.60q is malformed, too long or there twice", setting)
		}
		env[name] = value
	}
	if env["MINE"] != "1" || env["RALPH_BRANCH"] != "ralph/7" || env["RALPH_ISSUE_TITLE"] != "a=bc" {
		t.Errorf("environment is %.300q", inv.Env)
	}
	for _, setting := range plain.Env {
		if name, _, _ := strings.Cut(setting, "="); env[name] != "mine" {
			t.Errorf("the user's %s lost to the agent's %q", name, setting)
		}
	}
}

func (s Subject) sessions(t *testing.T) {
	t.Parallel()
	r := s.request()
	r.Session = cmp.Or(s.Session, "0f3c2a10-0000-4000-8000-000000000001")
	inv, err := s.Agent.Invocation(r)
	if s.Session == "" {
		if err == nil || s.Agent.Describe().CanResume(r.Session) {
			t.Error("an agent without sessions accepts one to resume")
		}
		return
	}
	if !s.Agent.Describe().CanResume(s.Session) {
		t.Errorf("its own session %s cannot be resumed", s.Session)
	}
	if err != nil || !slices.Contains(inv.Argv, r.Session) {
		t.Fatalf("argv %q does not resume %s: %v", inv.Argv, r.Session, err)
	}
	for _, hostile := range []string{"--dangerously-skip-permissions", "a b", "a\x00", "../x", "x.jsonl", "--", strings.Repeat("a", 200)} {
		if s.Agent.Describe().CanResume(hostile) {
			t.Errorf("session %.40q can be resumed", hostile)
		}
		r.Session = hostile
		if _, err := s.Agent.Invocation(r); err == nil {
			t.Errorf("session %.40q is accepted", hostile)
		}
	}

	d := s.Agent.NewDecoder()
	var session string
	for _, line := range s.Stream {
		for _, e := range d.Line([]byte(line)) {
			if e.Kind == agents.EventSession {
				session = e.Session
			}
		}
	}
	if report := d.Finish(agents.Ending{}); session != s.Session || report.Session != s.Session {
		t.Errorf("session: event %q, report %q, want %q", session, report.Session, s.Session)
	}
}

func (s Subject) endings(t *testing.T) {
	t.Parallel()
	finish := func(stream []string, e agents.Ending) agents.Report {
		d := s.Agent.NewDecoder()
		for _, line := range stream {
			d.Line([]byte(line))
		}
		return d.Finish(e)
	}
	if f := finish(s.Stream, agents.Ending{}).Failure; f != nil {
		t.Errorf("a run that ended well has failed: %v", f)
	}
	if f := finish(nil, agents.Ending{}).Failure; (f != nil) != s.Silent {
		t.Errorf("a silent run that exits 0: failure %v, want one: %t", f, s.Silent)
	}
	missing := errors.Join(errors.New("start agent"), exec.ErrNotFound)
	for name, c := range map[string]struct {
		ending agents.Ending
		class  agents.Class // empty: any
	}{
		"could not start":      {agents.Ending{StartErr: missing}, agents.NotStarted},
		"killed":               {agents.Ending{ExitCode: 137, Signal: "SIGKILL"}, agents.Killed},
		"killed, status only":  {agents.Ending{ExitCode: 143}, agents.Killed},
		"killed, signal only":  {agents.Ending{Signal: "SIGTERM"}, agents.Killed},
		"exit 1":               {agents.Ending{ExitCode: 1}, ""},
		"exit 1, noisy":        {agents.Ending{ExitCode: 1, StderrTail: strings.Repeat("x\x1b[31m\n", 9000)}, ""},
		"exit 255, rate words": {agents.Ending{ExitCode: 255, StderrTail: "429 rate limit, see test_429.go\n"}, agents.OtherFailure},
	} {
		for streamName, stream := range map[string][]string{"nothing": nil, "a whole run": s.Stream} {
			f := finish(stream, c.ending).Failure
			if f == nil {
				t.Errorf("%s after %s: no failure", name, streamName)
				continue
			}
			if c.class != "" && f.Class != c.class {
				t.Errorf("%s after %s: class %s, want %s", name, streamName, f.Class, c.class)
			}
			if f.Message == "" || len(f.Message) > 2048 || strings.ContainsAny(f.Message, "\n\x1b") {
				t.Errorf("%s after %s: message %.80q is empty, long or not one line", name, streamName, f.Message)
			}
		}
	}
}
