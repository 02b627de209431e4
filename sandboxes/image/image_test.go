package image_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/sandboxes/image"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClean(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"ralph": "ralph", "My Project": "my-project", "a//b": "a-b", "..": "local", "": "local", "ünï": "n",
		"-x-": "x", "a_b.c": "a_b.c", strings.Repeat("x", 300): strings.Repeat("x", 100), "日本": "local",
	} {
		if got := image.Clean(name); got != want {
			t.Errorf("Clean(%q) = %q, want %q", name, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("My Project")
	f.Add("\x00\xff")
	tag := regexp.MustCompile(`^[a-z0-9_][a-z0-9_.-]{0,99}$`)
	f.Fuzz(func(t *testing.T, name string) {
		if got := image.Clean(name); !tag.MatchString(got) {
			t.Errorf("Clean(%q) = %q", name, got)
		}
	})
}

func TestTagFollowsContent(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "My Repo")
	file := filepath.Join(root, "Dockerfile")
	write(t, file, "FROM a")
	tag := func(root string, args ...string) string {
		t.Helper()
		got, err := image.Tag(root, file, args)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := tag(root, "A=1", "B=2")
	if !regexp.MustCompile(`^ralph:my-repo-[0-9a-f]{12}$`).MatchString(first) {
		t.Errorf("tag is %s", first)
	}
	if again := tag(root, "B=2", "A=1"); again != first {
		t.Errorf("the order of arguments changes the tag: %s, %s", first, again)
	}
	others := []string{first, tag(root, "A=1"), tag(root+"2", "A=1", "B=2"), tag(root, "A=1B=2"), tag(root, "A=1", "B=2", "")}
	write(t, file, "FROM b")
	others = append(others, tag(root, "A=1", "B=2"))
	slices.Sort(others)
	if unique := slices.Compact(slices.Clone(others)); len(unique) != len(others) {
		t.Errorf("different builds share a tag: %q", others)
	}
	if _, err := image.Tag(root, file+"x", nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	want := func(engine, rel string) {
		t.Helper()
		if got, err := image.File(root, engine); err != nil || got != filepath.Join(root, rel) {
			t.Errorf("%s takes %s, %v; want %s", engine, got, err, rel)
		}
	}
	// The project's own build file is never used: an agent may have changed it.
	write(t, filepath.Join(root, "Dockerfile"), "")
	write(t, filepath.Join(root, "Containerfile"), "")
	_, err := image.File(root, "podman")
	if text := root + " has no Containerfile in .ralph"; err == nil || err.Error() != text {
		t.Errorf("error is %v, want %s", err, text)
	}
	write(t, filepath.Join(root, ".ralph/Dockerfile"), "")
	want("docker", ".ralph/Dockerfile")
	want("podman", ".ralph/Dockerfile")
	write(t, filepath.Join(root, ".ralph/Containerfile"), "")
	want("podman", ".ralph/Containerfile")
}

func TestArgs(t *testing.T) {
	t.Parallel()
	got, err := image.Args([]string{"X=a=b", "AGENT_UID=7", "X=c", "E="})
	if err != nil || len(got) != 4 || !slices.IsSorted(got) || !slices.Contains(got, "X=c") || !slices.Contains(got, "AGENT_UID=7") || !slices.Contains(got, "E=") {
		t.Errorf("arguments are %q, %v", got, err)
	}
	for bad, want := range map[string]string{
		"X": `build argument "X" is not KEY=VALUE`, "=v": `build argument "=v" has no key`,
	} {
		if _, err := image.Args([]string{bad}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", bad, err, want)
		}
	}
}

// shim returns an engine that prints its arguments and exits with a status.
func shim(t *testing.T, status string) (image.Engine, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine")
	write(t, path, "#!/bin/sh\nfor a; do echo \"$a\"; done\necho progress >&2\nexit "+status+"\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	return image.Engine{Name: "docker", Command: []string{path}, Stdout: &out, Stderr: &errs}, &out, &errs
}

func TestCommandLines(t *testing.T) {
	t.Parallel()
	e, out, errs := shim(t, "0")
	err := e.Build(t.Context(), image.Build{
		File: "F", Tag: "ralph:x", Context: ".", Args: []string{"A=1", "B=two words"}, NoCache: true, Pull: true,
	})
	want := "build --file F --tag ralph:x --build-arg A=1 --build-arg B=two words --no-cache --pull -- ."
	if got := strings.ReplaceAll(strings.TrimSpace(out.String()), "\n", " "); err != nil || got != want || errs.String() != "progress\n" {
		t.Errorf("%v: %s\nwant %s", err, got, want)
	}
	e, out, _ = shim(t, "17")
	err = e.Remove(t.Context(), "ralph:x")
	if exit, ok := errors.AsType[*image.ExitError](err); !ok || exit.Code != 17 || err.Error() != "docker rmi: exit status 17" || out.String() != "rmi\n--\nralph:x\n" {
		t.Errorf("%v, %q", err, out)
	}
}

func TestEngineThatIsMissing(t *testing.T) {
	t.Parallel()
	err := image.Engine{Name: "docker", Env: []string{"PATH=/nowhere"}}.Remove(t.Context(), "x")
	if !errors.Is(err, exec.ErrNotFound) || !strings.HasPrefix(err.Error(), "docker is not installed: ") {
		t.Errorf("error is %v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
