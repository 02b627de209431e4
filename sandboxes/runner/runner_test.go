package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/runner"
	"github.com/ralph-pool/ralph/sandboxes/session"
)

// each runs a test on every provider.
func each(t *testing.T, test func(t *testing.T, c runner.Config)) {
	t.Helper()
	t.Parallel()
	for _, p := range providers() {
		t.Run(p.Name(), func(t *testing.T) {
			t.Parallel()
			test(t, config(t, p))
		})
	}
}

// config returns a configuration that the provider accepts.
func config(t *testing.T, p sandboxes.Provider) runner.Config {
	t.Helper()
	c := runner.Config{
		Session:   session.Config{Provider: p, Spec: sandboxes.Spec{Worktree: t.TempDir()}},
		Artefacts: filepath.Join(t.TempDir(), "artefacts"),
		HostEnv:   []string{"ALLOWED=yes", "OTHER=no", "API_TOKEN=host-token-1", "PLAIN=plain-secret"},
	}
	if !p.Capabilities().Egress {
		c.Network = runner.NetworkOpen
	}
	return c
}

// start starts a sandbox that is closed when the test ends.
func start(t *testing.T, c runner.Config) *runner.Instance {
	t.Helper()
	in, err := runner.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return in
}

// sh runs a script inside, which must succeed, and returns its output.
func sh(t *testing.T, in *runner.Instance, script string, env ...string) string {
	t.Helper()
	var out bytes.Buffer
	exit, err := in.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-ec", script}, Env: env, Stdout: &out, Stderr: &out})
	if err != nil || !exit.OK() {
		t.Fatalf("%s: %+v, %v\n%s", script, exit, err, &out)
	}
	return out.String()
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestArtefacts(t *testing.T) {
	each(t, func(t *testing.T, c runner.Config) {
		c.EnvAllow = []string{"ALLOWED", "ABSENT", "API_TOKEN", "PLAIN"}
		c.Session.Spec.Env = []string{"SET=over"}
		c.Secrets = []string{"PLAIN"}
		in := start(t, c)
		script := `echo "$ALLOWED-$OTHER-$SET"; echo "$API_TOKEN" "$PLAIN" "$MY_SECRET" | tee made; echo result >'` + in.Files() + `/out'`
		if got := sh(t, in, script, "MY_SECRET=command-secret"); got != "yes--over\nhost-token-1 plain-secret command-secret\n" {
			t.Errorf("output is %q", got)
		}
		if got := read(t, c.Artefacts, "logs/0001.stdout"); got != "yes--over\n[secret] [secret] [secret]\n" {
			t.Errorf("the log is %q", got)
		}
		if got := read(t, c.Artefacts, "files/out"); got != "result\n" {
			t.Errorf("the file is %q", got)
		}
		if got := read(t, c.Session.Spec.Worktree, "made"); !strings.Contains(got, "host-token-1") {
			t.Errorf("the workspace has %q", got)
		}
		sh(t, in, "test host-token-1 != x")
		for range 2 {
			if err := in.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		text := read(t, c.Artefacts, "sandbox.json")
		var d struct {
			Sandbox, Workdir, Closed string
			Spec                     sandboxes.Spec
		}
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		if d.Spec.Run != in.Name() || d.Sandbox != c.Session.Provider.Name() || d.Workdir != in.Workdir() || d.Closed == "" ||
			!slices.Equal(d.Spec.Env, []string{"ALLOWED", "API_TOKEN", "PLAIN", "SET"}) {
			t.Errorf("sandbox.json is %s", text)
		}
		commands := read(t, c.Artefacts, "commands.jsonl")
		if n := strings.Count(commands, "\n"); n != 2 || !strings.Contains(commands, "test [secret] != x") {
			t.Errorf("%d commands: %s", n, commands)
		}
		for _, secret := range []string{"host-token-1", "plain-secret", "command-secret"} {
			if strings.Contains(text+commands, secret) {
				t.Errorf("%s is in the record", secret)
			}
		}
		if _, err := in.Exec(t.Context(), sandboxes.Command{Argv: []string{"true"}}); !errors.Is(err, sandboxes.ErrClosed) {
			t.Errorf("exec after close: %v", err)
		}
		if _, err := runner.Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "contains the artefacts of another run") {
			t.Errorf("start over old artefacts: %v", err)
		}
	})
}

func TestExecTellsHowItEnds(t *testing.T) {
	each(t, func(t *testing.T, c runner.Config) {
		c.MaxLog = 4
		in := start(t, c)
		exit, err := in.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", "printf 123456; exit 7"}})
		if err != nil || exit.Code != 7 {
			t.Errorf("%+v, %v", exit, err)
		}
		var notStarted *sandboxes.StartError
		if _, err := in.Exec(t.Context(), sandboxes.Command{Argv: []string{"no-such-program"}}); !errors.As(err, &notStarted) {
			t.Errorf("%v", err)
		}
		if got := read(t, c.Artefacts, "logs/0001.stdout"); got != "1234" {
			t.Errorf("the log is %q", got)
		}
		commands := read(t, c.Artefacts, "commands.jsonl")
		if !strings.Contains(commands, `"code":7`) || !strings.Contains(commands, `"dropped":2`) || !strings.Contains(commands, `"error":"start no-such-program`) {
			t.Errorf("commands: %s", commands)
		}
	})
}

func TestMounts(t *testing.T) {
	each(t, func(t *testing.T, c runner.Config) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte("mounted"), 0o644); err != nil {
			t.Fatal(err)
		}
		c.Session.Spec.Mounts = []sandboxes.Mount{{Host: dir, Inside: "/data", ReadOnly: true}}
		if c.Session.Provider.Capabilities().Files == sandboxes.InPlace {
			if _, err := runner.Start(t.Context(), c); !errors.Is(err, sandboxes.ErrUnsupported) {
				t.Errorf("mounts in place: %v", err)
			}
			return
		}
		in := start(t, c)
		if got := sh(t, in, "cat /data/f; ! (echo x >/data/f) 2>/dev/null"); got != "mounted" {
			t.Errorf("the mount has %q", got)
		}
	})
}

// entered is a provider whose sandboxes have a command prefix.
type entered struct{ sandboxes.Provider }

type enteredBox struct{ sandboxes.Sandbox }

func (e entered) Open(ctx context.Context, s sandboxes.Spec) (sandboxes.Sandbox, error) {
	box, err := e.Provider.Open(ctx, s)
	return enteredBox{box}, err
}

func (enteredBox) CommandPrefix() ([]string, error) { return []string{"engine", "exec", "box"}, nil }

func TestCommandPrefix(t *testing.T) {
	each(t, func(t *testing.T, c runner.Config) {
		in := start(t, c)
		want := "sandbox " + c.Session.Provider.Name() + " has no command prefix: sandbox cannot do this; run the command through the session"
		if _, err := in.CommandPrefix(); !errors.Is(err, sandboxes.ErrUnsupported) || err.Error() != want {
			t.Errorf("error is %v", err)
		}
		c.Session.Provider, c.Artefacts = entered{c.Session.Provider}, filepath.Join(t.TempDir(), "a")
		if prefix, err := start(t, c).CommandPrefix(); err != nil || !slices.Equal(prefix, []string{"engine", "exec", "box"}) {
			t.Errorf("%q, %v", prefix, err)
		}
	})
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	none := sandboxes.NewNone(sandboxes.NoneConfig{})
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(c *runner.Config)
		want   string
	}{
		"no provider":  {func(c *runner.Config) { c.Session.Provider = nil }, "name a provider or an image, and not both"},
		"workspace":    {func(c *runner.Config) { c.Session.Spec.Worktree = "w" }, `workspace "w" is not an absolute path`},
		"artefacts":    {func(c *runner.Config) { c.Artefacts = "a" }, `folder of artefacts "a" is not an absolute path`},
		"overlap":      {func(c *runner.Config) { c.Session.Spec.Worktree, c.Artefacts = dir, link+"/new/a" }, "overlap; choose another folder"},
		"mount":        {func(c *runner.Config) { c.Session.Spec.Mounts = []sandboxes.Mount{{Host: "/", Inside: "/host"}} }, "and mount / overlap"},
		"place":        {func(c *runner.Config) { c.Session.Spec.Mounts = []sandboxes.Mount{{Host: dir, Inside: "/artefacts/x"}} }, "/artefacts inside is for the artefacts"},
		"variable":     {func(c *runner.Config) { c.EnvAllow = []string{"GIT_*"} }, `allowed variable "GIT_*" is not a name`},
		"network":      {func(c *runner.Config) { c.Network = "wide" }, `network "wide" is not one of none, allow-list, open`},
		"proxy":        {func(c *runner.Config) { c.Network = runner.NetworkAllowed }, "needs the socket of an egress proxy"},
		"no proxy":     {func(c *runner.Config) { c.Session.Spec.Egress = "/s" }, "uses no egress proxy"},
		"closed":       {func(c *runner.Config) { c.Network = "" }, "sandbox none does not close the network: sandbox cannot do this; choose another, or ask for network open"},
		"limits":       {func(c *runner.Config) { c.Session.Spec.Limits.PIDs = 5 }, "sandbox none does not enforce every limit on this host: sandbox cannot do this"},
		"isolation":    {func(c *runner.Config) { c.Session.Spec.RequireIsolation = true }, "sandbox none does not isolate"},
		"no workspace": {func(c *runner.Config) { c.Session.Spec.Worktree = dir + "/none" }, "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config(t, none)
			tt.change(&c)
			_, err := runner.Start(t.Context(), c)
			if err == nil || !strings.HasPrefix(err.Error(), "start the sandbox: ") || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %v, want %s", err, tt.want)
			}
		})
	}
}

// fetching is a provider with Copy files whose sandboxes have one result in the artefacts' folder.
type fetching struct {
	sandboxes.Provider
	err error // error of the first Fetch
}

func (f *fetching) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{Files: sandboxes.Copy, Limits: true, Weaker: "it is a test's"}
}

func (f *fetching) Open(ctx context.Context, s sandboxes.Spec) (sandboxes.Sandbox, error) {
	home := s.Worktree + "-home"
	s.Env = append(s.Env, "HOME="+home)
	box, err := f.Provider.Open(ctx, s)
	return &fetchingBox{box, f}, errors.Join(err, os.MkdirAll(home, 0o700))
}

type fetchingBox struct {
	sandboxes.Sandbox
	of *fetching
}

func (b *fetchingBox) Fetch(_ context.Context, paths []string, into *os.Root, _ sandboxes.FetchLimits) error {
	if !slices.Equal(paths, []string{"/artefacts"}) {
		return fmt.Errorf("asked for %q", paths)
	}
	err := b.of.err
	b.of.err = nil
	return errors.Join(err, into.WriteFile("out", []byte("result"), 0o600))
}

// With copied files, Close fetches the results before it closes the sandbox. The record contains the provider's weakness.
func TestCloseFetches(t *testing.T) {
	t.Parallel()
	broken := errors.New("cannot fetch now")
	home := t.TempDir()
	write(t, filepath.Join(home, ".codex/auth.json"), `{"access":"token-of-the-login"}`)
	c := config(t, &fetching{sandboxes.NewNone(sandboxes.NoneConfig{}), broken})
	c.Session.Home, c.Session.Logins = home, []string{".codex/auth.json"}
	in := start(t, c)
	if text := read(t, c.Artefacts, "sandbox.json"); !strings.Contains(text, `"Weaker": "it is a test's"`) || !strings.Contains(text, "the login .codex/auth.json is in the sandbox") {
		t.Errorf("sandbox.json is %s", text)
	}
	if got := sh(t, in, "cat ~/.codex/auth.json"); !strings.Contains(got, "token-of-the-login") || strings.Contains(read(t, c.Artefacts, "logs/0001.stdout"), "token") {
		t.Errorf("inside the login is %q, in the log %q", got, read(t, c.Artefacts, "logs/0001.stdout"))
	}
	if err := in.Close(t.Context()); !errors.Is(err, broken) {
		t.Errorf("the first Close: %v", err)
	}
	sh(t, in, "true") // the sandbox is still open
	for range 2 {
		if err := in.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, c.Artefacts, "files/out"); got != "result" {
		t.Errorf("fetched is %q", got)
	}
}
