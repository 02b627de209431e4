package scaffold

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestWriteNeverOverwrites checks that anything with the name of the folder stays unchanged.
func TestWriteNeverOverwrites(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(path string) error{
		"configured": func(p string) error {
			return errors.Join(os.Mkdir(p, 0o755), os.WriteFile(filepath.Join(p, "config.yaml"), []byte("x"), 0o600))
		},
		"file":          func(p string) error { return os.WriteFile(p, []byte("x"), 0o600) },
		"dangling link": func(p string) error { return os.Symlink("nowhere", p) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			if err := prepare(filepath.Join(top, Dir)); err != nil {
				t.Fatal(err)
			}
			if _, err := Write(top, []File{{Path: "a", Data: []byte("x")}}); !errors.Is(err, ErrExists) {
				t.Errorf("got %v", err)
			}
			onlyThere(t, top, Dir)
			if _, err := os.Stat(filepath.Join(top, Dir, "a")); err == nil {
				t.Error("written into what was there")
			}
		})
	}
}

// TestWriteAdds checks that a folder without a configuration gets the missing files, and that its own stay unchanged.
func TestWriteAdds(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, Dir)
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "backlog"), 0o755), os.WriteFile(filepath.Join(dir, "prompt.md"), []byte("mine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	files := []File{{Path: "config.yaml", Data: []byte("x")}, {Path: "prompt.md", Data: []byte("x")}, {Path: "a/b", Data: []byte("x")}}
	written, err := Write(top, files)
	if diff := cmp.Diff([]File{files[2], files[0]}, written); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "prompt.md")); err != nil || string(text) != "mine" {
		t.Errorf("prompt.md is %q, %v", text, err)
	}
	onlyThere(t, top, Dir)
	onlyThere(t, dir, "a", "backlog", "config.yaml", "prompt.md")
}

// TestWriteIsWholeOrNothing checks that a failure leaves nothing: the second file needs a folder where the first file is.
func TestWriteIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	if _, err := Write(top, []File{{Path: "a", Data: []byte("x")}, {Path: "a/b", Data: []byte("y")}}); err == nil {
		t.Fatal("no error")
	}
	onlyThere(t, top)
}

// TestWriteObeysTheUmask checks the modes of files, so that a group can share the repository. It is not parallel, because the
// umask is global to the process.
func TestWriteObeysTheUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o002))
	top := t.TempDir()
	files := []File{{Path: "config.yaml", Data: []byte("x")}, {Path: "backlog/a.md", Data: []byte("x")}}
	if _, err := Write(top, files); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{"": 0o775, "config.yaml": 0o664, "backlog": 0o775, "backlog/a.md": 0o664} {
		if info, err := os.Stat(filepath.Join(top, Dir, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}

// TestWriteStaysInside checks that no path leads out of the folder.
func TestWriteStaysInside(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	if _, err := Write(top, []File{{Path: "../../escaped", Data: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	onlyThere(t, top, Dir)
	onlyThere(t, filepath.Join(top, Dir), "escaped")
}

// TestImageName checks the default build file: Containerfile for podman, Dockerfile for docker.
func TestImageName(t *testing.T) {
	t.Parallel()
	for sandbox, want := range map[string]string{"none": "Dockerfile", "docker": "Dockerfile", "podman": "Containerfile"} {
		files, err := Files(Choices{Agent: "codex", Sandbox: sandbox, Label: "no-human"})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range files {
			found = found || f.Path == want
		}
		if !found {
			t.Errorf("%s: no %s", sandbox, want)
		}
	}
}

func onlyThere(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
