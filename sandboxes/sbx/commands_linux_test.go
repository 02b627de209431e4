package sbx_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

var update = flag.Bool("update", false, "write testdata/commands.golden anew")

// All calls of sbx for one sandbox: the arguments, their order, and which of them carry a secret.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	const key = "sk-the-real-key"
	s := newScene(t)
	var state string
	p, shim := withShim(t, func(c *sbx.Config) {
		c.Template, c.Allow, c.Deny = "example/shell:1", []string{"api.anthropic.com:443", "*.example.com"}, []string{"ads.example.com"}
		c.SecretEnv = map[string]string{"anthropic": "KEY_OF_THIS_TEST", "openai": "NOT_SET_IN_THIS_TEST"}
		c.HostEnv = append(c.HostEnv, "KEY_OF_THIS_TEST="+key)
		state = c.StateDir
	})
	if err := p.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	box, err := p.Open(t.Context(), s.spec("golden"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", "exit 3"}, Env: []string{"TOKEN=of one command"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(s.worktree, ".git")); err != nil || string(text) != s.git {
		t.Errorf("afterwards .git says %q, %v", text, err)
	}
	if left, _ := os.ReadDir(state); len(left) > 0 {
		t.Errorf("left in the state folder: %v", left)
	}

	var got strings.Builder
	for _, c := range shim.calls(t) {
		got.WriteString("sbx " + strings.Join(c.Args, " "))
		if c.Stdin != "" {
			got.WriteString(" <<< " + c.Stdin)
		}
		got.WriteString("\n")
		if strings.Contains(strings.Join(c.Args, " "), key) || strings.Contains(strings.Join(c.Args, " "), "of one command") {
			t.Errorf("a command line carries what it must not: %q", c.Args)
		}
	}
	text := strings.NewReplacer(s.worktree, "WORKTREE", s.private, "PRIVATE", s.objects, "OBJECTS", s.tools, "TOOLS", state, "STATE").
		Replace(got.String())
	text = regexp.MustCompile(`\b[A-Z2-7]{26}\b`).ReplaceAllString(text, "COMMAND")
	golden := filepath.Join("testdata", "commands.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("sbx is called so:\n%s\nwant:\n%s", text, want)
	}
}

// Open replaces the sandbox that a crash has left.
func TestOpenRecreates(t *testing.T) {
	t.Parallel()
	p, shim := withShim(t, nil)
	spec := sandboxes.Spec{Run: "again", Worktree: t.TempDir()}
	for range 2 {
		if _, err := p.Open(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	removed := 0
	for _, c := range shim.calls(t) {
		if c.Args[0] == "rm" {
			removed++
		}
	}
	if removed != 1 {
		t.Errorf("%d microVMs were removed, want 1", removed)
	}
	if err := p.Reap(t.Context(), spec.Run); err != nil {
		t.Fatal(err)
	}
}

// Root inside can remove ralph's .git file. The host restores its own file and reports the change.
func TestCloseRestoresGit(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p, _ := withShim(t, nil)
	box, err := p.Open(t.Context(), s.spec("hostile"))
	if err != nil {
		t.Fatal(err)
	}
	untouched := replaceGit(t, box)
	if err := box.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "it was put back") {
		t.Errorf("Close: %v", err)
	}
	untouched(s)
}

// replaceGit makes root inside replace .git by a link to a host file. The returned function checks that the link is gone
// and was not followed.
func replaceGit(t *testing.T, box sandboxes.Sandbox) (check func(scene)) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "untouched")
	if err := os.WriteFile(other, []byte("untouched"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Stdout: &out, Stderr: &out, Argv: []string{"sh", "-c", `
		! echo x >.git && ! rm .git && umount .git && rm .git && ln -s "$1" .git`, "sh", other}})
	if err != nil || !exit.OK() {
		t.Fatalf("%+v, %v: %s", exit, err, &out)
	}
	return func(s scene) {
		t.Helper()
		git := filepath.Join(s.worktree, ".git")
		if info, err := os.Lstat(git); err != nil || !info.Mode().IsRegular() {
			t.Errorf(".git is %v, %v", info, err)
		}
		for path, want := range map[string]string{git: s.git, other: "untouched"} {
			if text, err := os.ReadFile(path); err != nil || string(text) != want {
				t.Errorf("%s says %q, %v, want %q", path, text, err, want)
			}
		}
	}
}

// After a crash, Reap does what Close would have done. So does an Open of the same run, before it reads .git.
func TestReapRestoresGit(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(p *sbx.Provider, spec sandboxes.Spec) error{
		"reap": func(p *sbx.Provider, spec sandboxes.Spec) error { return p.Reap(t.Context(), spec.Run) },
		"open": func(p *sbx.Provider, spec sandboxes.Spec) error {
			box, err := p.Open(t.Context(), spec)
			if err != nil {
				return err
			}
			return box.Close(t.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			var state string
			p, _ := withShim(t, func(c *sbx.Config) { state = c.StateDir })
			spec := s.spec("crashed")
			box, err := p.Open(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			untouched := replaceGit(t, box)
			if err := again(p, spec); err != nil {
				t.Error(err)
			}
			untouched(s)
			if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
				t.Errorf("left in the state folder: %v, %v", left, err)
			}
		})
	}
}

// Refused connections are listed as far as they are safe to show. If they are unknown, a notice says so.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		log    string
		status int
		want   []sandboxes.Refusal
		notice string
	}{
		"some": {
			log: `{"blocked_hosts":[
				{"host":"a.example:443","vm_name":"BOX","proxy_type":"forward","rule":"<default policy>","count_since":2},
				{"host":"b.example:443","vm_name":"BOX","rule":"ads-block","count_since":7},
				{"host":"c.example:443","vm_name":"another","rule":"ads-block","count_since":9},
				{"host":"[2001:db8::1]:22","rule":"no applicable policies for op=(action:net:connect:tcp)"},
				{"host":"<img src=x>","vm_name":"BOX","count_since":1}],
				"allowed_hosts":[{"host":"d.example","vm_name":"BOX","count_since":1}]}`,
			want: []sandboxes.Refusal{
				{Host: "b.example", Port: 443, Reason: "sbx policy: ads-block", Count: 7},
				{Host: "a.example", Port: 443, Reason: "sbx policy: default policy", Count: 2},
				{Host: "2001:db8::1", Port: 22, Reason: "sbx policy", Count: 1},
				{Host: "an invalid name", Reason: "sbx policy", Count: 1},
			},
		},
		"none":    {log: `{"blocked_hosts":[],"allowed_hosts":[]}`},
		"another": {log: `{"entries":[]}`, notice: "the refused connections of the sbx policy are not known: read sbx policy log: it has no list of blocked hosts"},
		"broken":  {log: "ERROR: no\n", status: 1, notice: "the refused connections of the sbx policy are not known: sbx policy: ERROR: no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, shim := withShim(t, nil)
			box, err := p.Open(t.Context(), sandboxes.Spec{Run: "refused", Worktree: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			boxes, err := os.ReadDir(shim.path("boxes"))
			if err != nil || len(boxes) != 1 {
				t.Fatal(boxes, err)
			}
			shim.answer(t, "policy log", strings.ReplaceAll(tt.log, "BOX", boxes[0].Name()), tt.status)
			if err := box.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if got, more := box.(sandboxes.RefusalReporter).Refusals(); !slices.Equal(got, tt.want) || more != 0 {
				t.Errorf("refused are %+v and %d more\nwant %+v", got, more, tt.want)
			}
			if got := sandboxes.NoticesOf(box); len(got) > 1 || (len(got) == 1) != (tt.notice != "") || len(got) == 1 && got[0].Text != tt.notice {
				t.Errorf("notices are %v, want %q", got, tt.notice)
			}
		})
	}
}

// A microVM that was idle stops, and starts again with the next command. Ralph's mounts are restored.
func TestGitAfterStop(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p, shim := withShim(t, nil)
	box, err := p.Open(t.Context(), s.spec("idle"))
	if err != nil {
		t.Fatal(err)
	}
	boxes, err := os.ReadDir(shim.path("boxes"))
	if err != nil || len(boxes) != 1 {
		t.Fatalf("%v, %v", boxes, err)
	}
	if err := shim.stop(boxes[0].Name()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Stdout: &out, Stderr: &out, Argv: []string{"sh", "-c", `
		git rev-parse --absolute-git-dir; ! echo x 2>/dev/null >.git && ! rm .git 2>/dev/null`}})
	if err != nil || !exit.OK() || out.String() != s.private+"\n" {
		t.Errorf("%+v, %v: %s", exit, err, &out)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A failed Open leaves nothing.
func TestOpenLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"create", "policy", "secret set", "exec"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			var state string
			p, shim := withShim(t, func(c *sbx.Config) {
				c.Allow, c.SecretEnv = []string{"example.com"}, map[string]string{"openai": "PATH"}
				state = c.StateDir
			})
			shim.answer(t, verb, "ERROR: it is broken\n", 1)
			_, err := p.Open(t.Context(), sandboxes.Spec{Run: "broken", Worktree: t.TempDir()})
			if err == nil || !strings.Contains(err.Error(), "it is broken") || strings.Contains(err.Error(), "\n") {
				t.Errorf("Open: %v", err)
			}
			if boxes, _ := filepath.Glob(shim.path("boxes", "*")); len(boxes) > 0 {
				t.Errorf("left: %v", boxes)
			}
			if left, _ := os.ReadDir(state); len(left) > 0 {
				t.Errorf("left in the state folder: %v", left)
			}
		})
	}
}
