package e2e

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha1" //nolint:gosec // what npm's registry has
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// registry serves a small package, hello-e2e 1.0.0, to go, npm and pip.
func registry(t *testing.T) string {
	t.Helper()
	archive := func(files map[string]string) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for name, text := range files {
			f, err := w.Create(name)
			if err == nil {
				_, err = f.Write([]byte(text))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	const goMod, wheel = "module hello.example/e2e\n\ngo 1.21\n", "hello_e2e-1.0.0-py3-none-any.whl"
	served := map[string][]byte{
		"/hello.example/e2e/@v/list":        []byte("v1.0.0\n"),
		"/hello.example/e2e/@v/v1.0.0.info": []byte(`{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}`),
		"/hello.example/e2e/@v/v1.0.0.mod":  []byte(goMod),
		"/hello.example/e2e/@v/v1.0.0.zip": archive(map[string]string{
			"hello.example/e2e@v1.0.0/go.mod": goMod, "hello.example/e2e@v1.0.0/e2e.go": "package e2e\n\nconst Greeting = \"hello\"\n",
		}),
		"/simple/hello-e2e/": []byte(`<a href="/files/` + wheel + `">` + wheel + `</a>`),
		"/files/" + wheel: archive(map[string]string{
			"hello_e2e.py":                       "greeting = 'hello'\n",
			"hello_e2e-1.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: hello-e2e\nVersion: 1.0.0\n",
			"hello_e2e-1.0.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: e2e\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
			"hello_e2e-1.0.0.dist-info/RECORD":   "hello_e2e.py,,\nhello_e2e-1.0.0.dist-info/METADATA,,\nhello_e2e-1.0.0.dist-info/WHEEL,,\nhello_e2e-1.0.0.dist-info/RECORD,,\n",
		}),
		"/files/hello-e2e-1.0.0.tgz": tarball(t, map[string]string{
			"package/package.json": `{"name":"hello-e2e","version":"1.0.0"}`, "package/index.js": "module.exports = 'hello'\n",
		}),
	}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	sum := sha1.Sum(served["/files/hello-e2e-1.0.0.tgz"]) //nolint:gosec // as above
	about, err := json.Marshal(map[string]any{
		"name": "hello-e2e", "dist-tags": map[string]string{"latest": "1.0.0"},
		"versions": map[string]any{"1.0.0": map[string]any{
			"name": "hello-e2e", "version": "1.0.0", "dist": map[string]string{"tarball": server.URL + "/files/hello-e2e-1.0.0.tgz", "shasum": hex.EncodeToString(sum[:])},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	served["/hello-e2e"] = about
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, ok := served[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if path.Ext(r.URL.Path) == "" {
			w.Header().Set("Content-Type", map[bool]string{true: "application/json", false: "text/html"}[r.URL.Path == "/hello-e2e"])
		}
		_, _ = w.Write(body)
	})
	return server.URL
}

func tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for name, text := range files {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The first steps of the README, in repositories whose tests need a dependency, in the default sandbox and with only the
// configuration that `ralph init --yes` proposes.
func TestFirstHour(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the default sandbox is Linux's")
	}
	model, packages := startModel(t), registry(t)
	for name, c := range map[string]struct {
		files map[string]string
		lock  string // command that creates the lock file
		setup string // part of the proposed setup
		agent string
	}{
		"go": {map[string]string{
			"go.mod":      "module app.example/app\n\ngo 1.21\n\nrequire hello.example/e2e v1.0.0\n",
			"app_test.go": "package app\n\nimport (\n\t\"testing\"\n\n\t\"hello.example/e2e\"\n)\n\nfunc TestIt(t *testing.T) {\n\tif e2e.Greeting != \"hello\" {\n\t\tt.Error(e2e.Greeting)\n\t}\n}\n",
		}, "go mod tidy", "go mod download", "claude-code"},
		"npm": {map[string]string{
			"package.json": `{"name":"app","version":"1.0.0","scripts":{"test":"node test.js"},"dependencies":{"hello-e2e":"1.0.0"}}`,
			"test.js":      "if (require('hello-e2e') !== 'hello') process.exit(1)\n", ".gitignore": "node_modules/\n",
		}, "npm install --package-lock-only --no-audit --no-fund", "npm ci", "codex"},
		"pip": {map[string]string{
			"requirements.txt": "hello-e2e==1.0.0\n",
			"test_app.py":      "import unittest, hello_e2e\n\nclass It(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(hello_e2e.greeting, 'hello')\n",
		}, "true", "python3 -m venv", "claude-code"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, r := newScene(t, doIt), newRepository(t)
			env := []string{
				s.mark, "PATH=" + filepath.Dir(agentProgram(t, strings.TrimSuffix(c.agent, "-code"))) + ":" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "TERM=dumb",
				"GORACE=" + os.Getenv("GORACE"), "HOME=" + s.path("home"), "XDG_STATE_HOME=" + s.path("state"), "XDG_CONFIG_HOME=" + s.path("config"),
				"GOPROXY=" + packages, "GOSUMDB=off", "npm_config_registry=" + packages + "/", "PIP_INDEX_URL=" + packages + "/simple/",
				"GOTOOLCHAIN=local",
			}
			if c.agent == "codex" {
				env = append(env, "OPENAI_API_KEY="+secret, "RALPH_AGENT_UPSTREAM="+model+"/v1", "RALPH_MODEL=gpt-5.5")
			} else {
				env = append(env, "ANTHROPIC_API_KEY="+secret, "RALPH_AGENT_UPSTREAM="+model)
			}
			env = append(env, gitEnv()...)
			for file, text := range c.files {
				r.write(t, file, text)
			}
			lock := exec.CommandContext(t.Context(), "sh", "-ec", c.lock)
			lock.Dir, lock.Env = string(r), append(env, "GOMODCACHE="+s.path("mod"), "GOFLAGS=-modcacherw")
			if out, err := lock.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", c.lock, err, out)
			}
			r.commit(t, "a project")

			ralph := func(args ...string) string {
				p := launch(t, r, env, args...)
				if got := p.end(t); got != 0 {
					t.Fatalf("ralph %s: status %d", strings.Join(args, " "), got)
				}
				return p.out.String()
			}
			if out := ralph("init", "--yes", "--agent", c.agent); !strings.Contains(out, c.setup) || !strings.Contains(out, strings.TrimPrefix(packages, "http://")) {
				t.Errorf("init:\n%s", out)
			}
			ralph("new", "Greet", "--body", "Write hello.txt.")
			if out := ralph("doctor"); strings.Contains(out, "fail") || strings.Contains(out, "network") || strings.Contains(out, "tools") {
				t.Errorf("doctor:\n%s", out)
			}
			ralph("work")
			if kept, err := filepath.Glob(s.path("state/ralph/*/homes/*")); err != nil || len(kept) != 2 { // a home and its lock
				t.Errorf("homes: %q, %v", kept, err)
			}
			if n := r.commits(t, "ralph/greet"); n != 1 {
				t.Errorf("%d commits", n)
			}
			if report := r.issue(t, "greet"); !strings.Contains(report, "**ralph: succeeded**") {
				t.Errorf("report:\n%s", report)
			}
			if out := fmt.Sprint(r.lines(t, "show", "--stat", "--format=", "ralph/greet")); !strings.Contains(out, "1 file changed") {
				t.Errorf("the commit has more than the agent's file: %s", out)
			}
			ralph("merge", "greet")
			if out := fmt.Sprint(r.lines(t, "log", "--format=", "--name-only", "-1", "main")); !strings.Contains(out, "hello.txt") {
				t.Errorf("main has %s", out)
			}
		})
	}
}
