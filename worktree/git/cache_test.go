package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// counted returns a runner on a new repository with its own home, and a function that counts its processes.
func counted(t *testing.T) (g Runner, dir string, processes func() int) {
	t.Helper()
	dir = t.TempDir()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "log")
	write(t, filepath.Join(dir, "bin", "git"), "#!/bin/sh\necho \"$1\" >>'"+log+"'\nexec '"+real+"' \"$@\"\n")
	repo := filepath.Join(dir, "repo")
	if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	common := filepath.Join(repo, ".git")
	g = New(dir).WithCache().Pin(common, common, repo)
	g.env = append(pickVariables(g.env, []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_CONFIG_COUNT"}), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"),
		"HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
	age(t, filepath.Join(common, "config"))
	return g, dir, func() int {
		content, _ := os.ReadFile(log)
		return strings.Count(string(content), "\n")
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

// age makes a file old enough that its time reveals a change.
func age(t *testing.T, path string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
}

func TestConfigIsReadOnce(t *testing.T) {
	t.Parallel()
	g, dir, processes := counted(t)
	linked := New(dir).ShareCache(g)
	linked.env = g.env
	linked = linked.Pin(filepath.Join(dir, "repo", ".git", "worktrees", "x"), g.common, filepath.Join(dir, "x"))
	for _, g := range []Runner{g, g.With(HardenedEnv()...), linked} {
		if _, err := g.Config(t.Context()); err != nil {
			t.Fatal(err)
		}
		if known, err := g.HasIdent(t.Context()); err != nil || known {
			t.Fatal(known, err)
		}
	}
	if n := processes(); n != 1 {
		t.Errorf("%d processes", n)
	}
	if _, err := g.With("GIT_CONFIG_GLOBAL=/dev/null").Config(t.Context()); err != nil || processes() != 2 {
		t.Errorf("another environment was given the same configuration; %v", err)
	}
}

// A changed, new or deleted file is noticed at the next reading.
func TestConfigIsReadAnew(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, dir string){
		"of the repository": func(t *testing.T, dir string) {
			path := filepath.Join(dir, "repo", ".git", "config")
			content, _ := os.ReadFile(path)
			write(t, path, string(content)+"[user]\nname = Ada\nemail = ada@example.invalid\n")
		},
		"of the user": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, ".gitconfig"), "[user]\nname = Ada\nemail = ada@example.invalid\n")
		},
		"in the user's folder": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, ".config", "git", "config"), "[user]\nname = Ada\nemail = ada@example.invalid\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, dir, _ := counted(t)
			if config, err := g.Config(t.Context()); err != nil || config.Get("user.name") != "" {
				t.Fatal(config, err)
			}
			if known, err := g.HasIdent(t.Context()); err != nil || known {
				t.Fatal(known, err)
			}
			change(t, dir)
			for range 2 { // too young to be cached
				if config, err := g.Config(t.Context()); err != nil || config.Get("user.name") != "Ada" {
					t.Errorf("%v, %v", config, err)
				}
				if known, err := g.HasIdent(t.Context()); err != nil || !known {
					t.Errorf("known %v, %v", known, err)
				}
			}
		})
	}
}

// A configuration with files besides the usual ones is read each time.
func TestConfigIsNotKept(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{
		"include": "[include]\npath = more\n", "of a folder": "[includeIf \"gitdir:/\"]\npath = more\n", "of a worktree": "[extensions]\nworktreeConfig = true\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, dir, _ := counted(t)
			path := filepath.Join(dir, "repo", ".git", "config")
			content, _ := os.ReadFile(path)
			write(t, path, string(content)+more)
			age(t, path)
			if _, err := g.Config(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"more", "config.worktree"} {
				write(t, filepath.Join(dir, "repo", ".git", file), "[user]\nname = Ada\n")
			}
			if config, err := g.Config(t.Context()); err != nil || config.Get("user.name") != "Ada" {
				t.Errorf("%v, %v", config, err)
			}
		})
	}
}

// A name counts if the environment or the configuration has both parts of it, for author and committer.
func TestKnownIdent(t *testing.T) {
	t.Parallel()
	g, dir, _ := counted(t)
	author, committer := []string{"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b.example"}, []string{"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@b.example"}
	for _, tt := range []struct {
		config string
		env    []string
		want   bool
	}{
		{"", author, false},
		{"", slices.Concat(author, committer), true},
		{"[user]\nname = 李明\nemail = a@b.example\n", nil, true},
		{"[user]\nname = A\n", nil, false},
		{"[user]\nname = .\nemail = a@b.example\n", nil, false},
		{"[user]\nname = A\nemail = a@b.example\n", []string{"GIT_AUTHOR_NAME="}, false},
		{"[committer]\nname = A\nemail = a@b.example\n", author, true},
		{"[committer]\nname = A\nemail = a@b.example\n", nil, false},
	} {
		write(t, filepath.Join(dir, ".gitconfig"), tt.config)
		known, err := g.With(tt.env...).HasIdent(t.Context())
		failed := false // git must agree
		for _, role := range []string{"AUTHOR", "COMMITTER"} {
			strict := g.With(append(tt.env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=user.useConfigOnly", "GIT_CONFIG_VALUE_0=true")...)
			_, err := strict.Output(t.Context(), "var", "GIT_"+role+"_IDENT")
			failed = failed || err != nil
		}
		if err != nil || known != tt.want || known == failed {
			t.Errorf("%q, %q: known %v, git fails %v, %v", tt.config, tt.env, known, failed, err)
		}
	}
}

// A run asks for the files of its base several times.
func TestFilesAreListedOnce(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, filepath.Join(r.dir, "a"), "")
	r.git("add", ".")
	r.git("commit", "-qm", "second")
	trace := filepath.Join(t.TempDir(), "trace")
	g, commit := r.With("GIT_TRACE="+trace).WithCache(), r.git("rev-parse", "HEAD")
	for range 2 {
		if list, err := g.Files(t.Context(), commit); err != nil || !strings.HasSuffix(list, "\ta\x00") {
			t.Errorf("%q, %v", list, err)
		}
	}
	if text, err := os.ReadFile(trace); err != nil || strings.Count(string(text), "built-in: git ls-tree") != 1 {
		t.Errorf("%v: %s", err, text)
	}
}
