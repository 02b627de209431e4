package pool_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// homeProvider is a bindingProvider whose commands have the kept home, or an empty one. It shows no layers.
type homeProvider struct {
	bindingProvider
	temp string
}

func (homeProvider) Capabilities() sandboxes.Capabilities {
	c := bindingProvider{}.Capabilities()
	c.Home = true
	return c
}

func (h homeProvider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	home := spec.Home
	if home == "" {
		var err error
		if home, err = os.MkdirTemp(h.temp, ""); err != nil {
			return nil, err
		}
	}
	spec.Env = append(slices.Clip(spec.Env), "HOME="+home)
	return h.bindingProvider.Open(ctx, spec)
}

// A sandbox without layers gets a copy of the files that setup has made, unless a commit changes a file that setup depends on. A
// tip that tracks such files itself gets no copy.
func TestSetupIsCopied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent string
		runs  int
	}{
		"once":               {`echo work >>work.txt`, 1},
		"its files change":   {`echo work >>README`, 2},   // on the base and on the tip
		"tracked by tip":     {`echo work >deps/mine`, 2}, // the same
		"a folder is gone":   {`git rm -qr sub`, 2},
		"a folder is a link": {`git rm -qr sub && rm -rf sub && mkdir other && echo x >other/x && ln -s other sub`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; `+c.agent+`; git add .; git commit -qm work`+done)
			f.write(".gitignore", ".ralph/\ndeps/a\ndeps/link\nout\n")
			f.write("sub/in", "")
			f.write("sub/deep/in", "")
			f.commit("sub")
			counts := filepath.Join(t.TempDir(), "counts")
			f.Config.Run.Sandboxes = homeProvider{newBindingProvider(nil), t.TempDir()}
			f.Config.Run.HomeBytes, f.Config.Run.SetupInputs = 1<<20, []string{"README"}
			f.Config.Run.Setup = lines(`echo run >>` + counts + ` && mkdir -p deps && echo x >deps/a && touch -d 2001-01-01 deps/a && ln -sf a deps/link && echo h >~/h && mkdir -p sub/deep && echo x >sub/out && echo x >sub/deep/out`)
			f.Config.Run.Gate = lines(`test "$(cat deps/link ~/h | tr '\n' ' ')" = "x h " && test deps/a -ot README && rm deps/a deps/link`)
			f.issue("a")
			if rec := f.one(); rec.Verdict.Outcome != journal.Succeeded {
				t.Fatalf("%+v", rec)
			}
			text, err := os.ReadFile(counts)
			if n := strings.Count(string(text), "run\n"); err != nil || n != c.runs {
				t.Errorf("setup ran %d times, %v; want %d", n, err, c.runs)
			}
		})
	}
}

// What setup has made on the base never makes a commit pass that would fail after its own setup. Files of a known installer serve
// only agents, and a home serves only commits with the same build files, unless it is only a cache.
func TestSetupOfTheCommitCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ setup, agent, gate string }{
		"a script of the project": {
			"npm ci", `echo "{}" >web/package.json`, `test -d ~/lib/package`,
		},
		"an installer that reads other files": {
			"npm ci", `echo broken >schema`, `test -e node_modules/schema && ! grep -q broken node_modules/schema`,
		},
		"installed in the home": {
			`while read p; do mkdir -p ~/lib/$p; done <requirements.txt`, `: >requirements.txt`, `test -d ~/lib/package`,
		},
		"the same, below the top": {
			`while read p; do mkdir -p ~/lib/$p; done <api/requirements.txt`, `: >api/requirements.txt`, `test -d ~/lib/package`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; `+c.agent+`; git add .; git commit -qm work`+done)
			f.write(".gitignore", ".ralph/\nnode_modules/\n")
			f.write("package.json", "{}\n")
			if name == "a script of the project" {
				f.write("web/package.json", `{"scripts": {"prepare": "x"}}`+"\n")
			}
			f.write("schema", "good\n")
			f.write("requirements.txt", "package\n")
			f.write("api/requirements.txt", "package\n")
			f.commit("dependencies")
			bin := t.TempDir()
			npm := "#!/bin/sh\nmkdir -p node_modules && cp schema node_modules/schema\n" +
				"if grep -q prepare web/package.json 2>/dev/null; then mkdir -p ~/lib/package; fi\n"
			if err := os.WriteFile(filepath.Join(bin, "npm"), []byte(npm), 0o700); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
			f.Config.Run.Sandboxes = homeProvider{newBindingProvider(nil), t.TempDir()}
			f.Config.Run.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
			f.Config.Run.HomeBytes, f.Config.Run.MaxIterations = 1<<20, 1
			f.Config.Run.Setup, f.Config.Run.Gate = lines(c.setup), lines(c.gate)
			f.issue("a")
			if rec := f.one(); rec.Verdict.Outcome != journal.GateFailed {
				t.Errorf("%s: %s", rec.Verdict.Outcome, rec.Verdict.Reason)
			}
		})
	}
}

// Files copied for a run belong to this run: none of them are kept for later ones.
func TestCopiedFilesAreNotKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo work >>work.txt; git add work.txt; git commit -qm work`+done)
	f.write(".gitignore", ".ralph/\n.env\n")
	f.commit("ignore")
	f.Config.Run.Sandboxes = homeProvider{newBindingProvider(nil), t.TempDir()}
	f.Config.Run.HomeBytes, f.Config.Run.SetupInputs, f.Config.Run.Copy = 1<<20, []string{"README"}, []string{".env"}
	f.Config.Run.Setup = lines(`echo x >deps`)
	for _, key := range []string{"a", "b"} {
		f.write(".env", key)
		f.Config.Run.Gate = lines(`test "$(cat .env)" = ` + key + ` && test -e deps`)
		f.issue(key)
		if rec := f.one(key); rec.Verdict.Outcome != journal.Succeeded {
			t.Errorf("%s: %+v", key, rec.Verdict)
		}
	}
}
