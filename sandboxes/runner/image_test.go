package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/image"
	"github.com/ralph-pool/ralph/sandboxes/runner"
)

// imaged is a provider whose image is a file in a folder.
type imaged struct {
	sandboxes.Provider
	file string
}

func (p imaged) Check(context.Context) error {
	if _, err := os.Stat(p.file); err != nil {
		return errors.New("there is no such image")
	}
	return nil
}

// store returns an image with a build folder and a fake engine: a script that creates the image file.
func store(t *testing.T) (*runner.Image, string) {
	t.Helper()
	dir, store := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "Dockerfile"), "FROM scratch")
	engine := filepath.Join(store, "engine")
	write(t, engine, "#!/bin/sh\necho \"building $*\"\nfor a; do case $a in (AGENT=bad) exit 4;; (runner:*) tag=$a;; esac; done\necho x >>\"${0%/*}/$tag\"\n")
	if err := os.Chmod(engine, 0o755); err != nil {
		t.Fatal(err)
	}
	im := &runner.Image{
		Name: "runner", Build: image.Build{Context: dir},
		Engine: image.Engine{Name: "engine", Command: []string{"/bin/sh", engine}},
		Provider: func(tag string) sandboxes.Provider {
			return imaged{sandboxes.NewNone(sandboxes.NoneConfig{}), filepath.Join(store, tag)}
		},
	}
	return im, store
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

func TestImageIsBuiltWhenItChanged(t *testing.T) {
	t.Parallel()
	im, dir := store(t)
	run := func(builds int) {
		t.Helper()
		c := config(t, sandboxes.NewNone(sandboxes.NoneConfig{}))
		c.Session.Provider, c.Image = nil, im
		start(t, c)
		tag, err := im.Tag()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(read(t, dir, tag), "x"); got != builds {
			t.Errorf("%s was built %d times, want %d", tag, got, builds)
		}
		if !strings.Contains(read(t, c.Artefacts, "sandbox.json"), `"image": "`+tag+`"`) {
			t.Error("sandbox.json does not name the image")
		}
		_, err = os.Stat(filepath.Join(c.Artefacts, "build.log"))
		if err == nil && !strings.Contains(read(t, c.Artefacts, "build.log"), "building build --file") {
			t.Error("the log of the build is not the engine's")
		}
	}
	run(1)
	run(1)
	write(t, filepath.Join(im.Build.Context, "copied/file"), "new")
	run(1) // the content, and so the image, has changed
	im.Rebuild = true
	run(2)
}

func TestImageThatDoesNotBuild(t *testing.T) {
	t.Parallel()
	im, _ := store(t)
	im.Build.Args = []string{"AGENT=bad"}
	c := config(t, sandboxes.NewNone(sandboxes.NoneConfig{}))
	c.Session.Provider, c.Image = nil, im
	tag, err := im.Tag()
	if err != nil {
		t.Fatal(err)
	}
	_, err = runner.Start(t.Context(), c)
	want := fmt.Sprintf("start the sandbox: build image %s: engine build: exit status 4; its output is in %s "+
		"(it was built because: there is no such image)", tag, filepath.Join(c.Artefacts, "build.log"))
	if err == nil || err.Error() != want {
		t.Errorf("error is %v\nwant %s", err, want)
	}
	im.Build.Args = nil
	start(t, c) // a failed start can be repeated with the same folder of artefacts
}
