package sbx_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

// The capabilities match the package's comment.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	p, _ := withShim(t, nil)
	can := p.Capabilities()
	if can.Limits || can.Egress || !can.Isolated() {
		t.Errorf("%+v", can)
	}
	for _, word := range []string{"root", ".git", "scratch space", "policy"} {
		if !strings.Contains(can.Weaker, word) {
			t.Errorf("%q says nothing of %q", can.Weaker, word)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		verb, text string
		status     int
		want       string // empty: it works
	}{
		"newer":    {"version", "sbx version: v1.2.3", 0, ""},
		"too old":  {"version", "v0.45.1", 0, "sbx 0.45 is too old: ralph needs 0.46 or newer; upgrade Docker Sandboxes"},
		"no sbx":   {"version", "hello", 0, `sbx version prints "hello", which is not a version; ralph needs 0.46 or newer`},
		"broken":   {"version", "cannot reach sandboxd\n", 1, "sbx version: cannot reach sandboxd"},
		"a remedy": {"diagnose", `{"checks":[{"name":"Login","status":"fail","message":"not\nlogged in","hint":"run sbx login"}]}`, 0, "sbx: Login: not logged in; run sbx login"},
		"no hint":  {"diagnose", `{"checks":[{"name":"KVM","status":"fail","message":"no /dev/kvm"}]}`, 0, "sbx: KVM: no /dev/kvm; run sbx diagnose for details"},
		"warning":  {"diagnose", `{"checks":[{"name":"Disk","status":"warn","message":"low"}]}`, 0, ""},
		"-o json":  {"diagnose --format", "unknown flag: --format\n", 1, ""},
		"no JSON":  {"diagnose", "all is well", 0, "read sbx diagnose: it prints no JSON object"},
		"nothing":  {"diagnose", "{}", 0, "read sbx diagnose: it lists no checks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, shim := withShim(t, nil)
			shim.answer(t, tt.verb, tt.text, tt.status)
			err := p.Check(t.Context())
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || err.Error() != tt.want) {
				t.Errorf("Check: %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCheckWithoutSbx(t *testing.T) {
	t.Parallel()
	p := sbx.New(sbx.Config{StateDir: t.TempDir(), HostEnv: []string{"PATH=" + t.TempDir()}})
	err := p.Check(t.Context())
	if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "stand-in") || strings.Contains(err.Error(), "\n") {
		t.Errorf("Check: %v", err)
	}
}

// A spec that sbx cannot meet or would misread is refused before anything is created.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*sbx.Config, *sandboxes.Spec)
		want   string
	}{
		"egress":    {func(_ *sbx.Config, s *sandboxes.Spec) { s.Egress = "/tmp/socket" }, "cannot use ralph's egress proxy"},
		"elsewhere": {func(_ *sbx.Config, s *sandboxes.Spec) { s.Mounts = []sandboxes.Mount{{Host: "/etc", Inside: "/x"}} }, "only at its own path"},
		"file":      {func(_ *sbx.Config, s *sandboxes.Spec) { s.Objects = []string{"/etc/passwd"} }, "not a folder"},
		"colon":     {func(_ *sbx.Config, s *sandboxes.Spec) { s.Objects = []string{"/tmp:ro"} }, "colon"},
		"relative":  {func(_ *sbx.Config, s *sandboxes.Spec) { s.Worktree = "here" }, "clean absolute path"},
		"memory":    {func(_ *sbx.Config, s *sandboxes.Spec) { s.Limits.Memory = 1 << 20 }, "less than 512 MiB"},
		"CPUs":      {func(_ *sbx.Config, s *sandboxes.Spec) { s.Limits.CPUs = 0.5 }, "less than one CPU"},
		"no run":    {func(_ *sbx.Config, s *sandboxes.Spec) { s.Run = "" }, "no id"},
		"no .git":   {func(_ *sbx.Config, s *sandboxes.Spec) { s.GitDir = "/" + "tmp" }, ".git"},
		"a flag":    {func(c *sbx.Config, _ *sandboxes.Spec) { c.Template = "--help" }, "starts with a dash"},
		"two hosts": {func(c *sbx.Config, _ *sandboxes.Spec) { c.Allow = []string{"a,b"} }, "a comma"},
		"state":     {func(c *sbx.Config, _ *sandboxes.Spec) { c.StateDir = "state" }, "state folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := sandboxes.Spec{Run: "refused", Worktree: t.TempDir()}
			p, shim := withShim(t, func(c *sbx.Config) { tt.change(c, &spec) })
			_, err := p.Open(t.Context(), spec)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Open: %v, want %q", err, tt.want)
			}
			if calls, _ := filepath.Glob(shim.path("calls")); len(calls) == 0 {
				return
			}
			for _, c := range shim.calls(t) {
				if c.Args[0] != "ls" { // needed to find what a crash has left
					t.Errorf("sbx was called: %q", c.Args)
				}
			}
		})
	}
}

func TestExecRefuses(t *testing.T) {
	t.Parallel()
	p, _ := withShim(t, nil)
	box, err := p.Open(t.Context(), sandboxes.Spec{Run: "refuse", Worktree: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = box.Close(context.WithoutCancel(t.Context())) }()
	for name, cmd := range map[string]sandboxes.Command{
		"nothing":  {},
		"variable": {Argv: []string{"sh"}, Env: []string{"a-b=1"}},
		"NUL":      {Argv: []string{"sh", "a\x00b"}},
		"folder":   {Argv: []string{"sh"}, Dir: "/no/such/folder"},
		"no file":  {Argv: []string{"/etc"}},
	} {
		var start *sandboxes.StartError
		if _, err := box.Exec(t.Context(), cmd); !errors.As(err, &start) {
			t.Errorf("%s: %v, want a StartError", name, err)
		}
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	const held = `{"secrets":[{"scope":"global","type":"service","name":"openai","secret":"(stored)"},` +
		`{"scope":"other-box","type":"service","name":"anthropic","secret":"(stored)"}]}`
	for name, tt := range map[string]struct {
		need sbx.Need
		want string // the last call with its input, or the error
	}{
		"held":          {sbx.Need{Service: "openai", Env: "KEY"}, "secret ls --json --service openai"},
		"refreshed":     {sbx.Need{Service: "openai", OAuth: true, Refresh: true}, "secret set openai --oauth"},
		"given":         {sbx.Need{Service: "anthropic", Secret: "given", Env: "KEY"}, "secret set anthropic <<< given"},
		"replaced":      {sbx.Need{Service: "openai", Env: "KEY", Refresh: true}, "secret set openai <<< value of KEY"},
		"none new":      {sbx.Need{Service: "openai", Refresh: true}, "there is no new secret for openai: give sbx one with: sbx secret set openai"},
		"of another":    {sbx.Need{Service: "anthropic", Env: "KEY"}, "secret set anthropic <<< value of KEY"},
		"login first":   {sbx.Need{Service: "anthropic", OAuth: true, Env: "KEY"}, "secret set anthropic --oauth"},
		"not to be had": {sbx.Need{Service: "xai", Env: "NONE"}, "sbx has no secret for xai: give it one with: sbx secret set xai"},
		"a flag":        {sbx.Need{Service: "--global"}, `"--global" is not a service of sbx`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, shim := withShim(t, func(c *sbx.Config) { c.HostEnv = append(c.HostEnv, "KEY=value of KEY") })
			shim.answer(t, "secret ls", held, 0)
			var out bytes.Buffer
			if err := p.Ensure(t.Context(), tt.need, &out); err != nil {
				if err.Error() != tt.want {
					t.Errorf("Ensure: %v, want %s", err, tt.want)
				}
				return
			}
			calls := shim.calls(t)
			last := calls[len(calls)-1]
			got := strings.Join(last.Args, " ")
			if last.Stdin != "" {
				got += " <<< " + last.Stdin
			}
			if got != tt.want {
				t.Errorf("the last call is %q, want %q", got, tt.want)
			}
		})
	}
}

// A secret that sbx repeats is not part of the error.
func TestSecretIsNotRepeated(t *testing.T) {
	t.Parallel()
	p, shim := withShim(t, nil)
	shim.answer(t, "secret set", "ERROR: sk-secret is no key\n", 1)
	if err := p.SetSecret(t.Context(), "openai", "sk-secret"); err == nil || strings.Contains(err.Error(), "sk-secret") {
		t.Errorf("SetSecret: %v", err)
	}
}
