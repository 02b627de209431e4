// Package scaffold makes the .ralph folder of a repository: what `ralph init` writes. [Files] renders it, [Write] puts it
// there whole or not at all. It keeps no state and is safe for concurrent use.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
)

//go:embed files
var files embed.FS

// Dir is the folder's name, below the top of the checkout.
const Dir = ".ralph"

// ErrExists is wrapped by Write when the folder is there already.
var ErrExists = errors.New("exists already")

// Choices is what the user decided. Agent and Sandbox are required.
type Choices struct {
	Agent, Sandbox, Model string
	About                 agents.Description // of the agent
	Fallback, Attempts    []string           // the others that work, as AGENT or AGENT:MODEL
	Review                string             // the one that reviews
	Others                []Other            // all of them, each once
	Command               []string           // for an agent without a program of its own
	SkipPermissions       bool
	Setup, Gate           []string
	Allow, AllowPrivate   []string // hosts that setup and gate need
	Env                   []string // NAME=VALUE that they need
	Provable              bool     // each file of tests can be run by itself
	Show                  []string // folders of the host that they need
	Prompt                string   // text of prompt.md
	Label                 string   // that picks issues up
	Tracker               string   // where the issues are; empty: auto
	Backlog               bool     // with a folder for the issues themselves
}

// Other is an agent besides the first.
type Other struct {
	Name  string
	About agents.Description
}

// File is one file to write, with a slash-separated path below Dir.
type File struct {
	Path string
	Data []byte
}

// Files renders the folder.
func Files(c Choices) ([]File, error) {
	image := "Dockerfile"
	if c.Sandbox == "podman" {
		image = "Containerfile"
	}
	data := struct {
		Choices
		Image string
	}{c, image}

	out := []File{{Path: "prompt.md", Data: []byte(c.Prompt)}}
	for _, f := range []struct{ name, source string }{
		{"config.yaml", "config.yaml.tmpl"},
		{image, "image.tmpl"},
		{".env.example", "env.tmpl"},
		{".gitignore", "gitignore.tmpl"},
		{"backlog/example.md", "example.md.tmpl"},
	} {
		if !c.Backlog && strings.HasPrefix(f.name, "backlog/") {
			continue
		}
		t, err := template.New(f.source).Funcs(template.FuncMap{"yaml": config.YAML}).ParseFS(files, "files/"+f.source)
		if err != nil {
			return nil, fmt.Errorf("scaffold %s: %w", f.name, err)
		}
		var text strings.Builder
		if err := t.Execute(&text, data); err != nil {
			return nil, fmt.Errorf("scaffold %s: %w", f.name, err)
		}
		out = append(out, File{Path: f.name, Data: []byte(text.String())})
	}
	return out, nil
}

// Write makes top/.ralph with the files. They are written to a folder beside it that is then renamed, so that a crash or
// a full disk leaves no half of it. It fails with ErrExists, and touches nothing, where anything has that name.
func Write(top string, files []File) (err error) {
	target := filepath.Join(top, Dir)
	if _, err := os.Lstat(target); err == nil {
		return fmt.Errorf("%s %w", target, ErrExists)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for %s: %w", target, err)
	}
	temp, err := os.MkdirTemp(top, Dir+".new-")
	if err != nil {
		return fmt.Errorf("write %s: %w", target, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	for _, f := range files {
		name := filepath.Join(temp, filepath.FromSlash(path.Clean("/"+f.Path)))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // part of the user's repository
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil { //nolint:gosec // part of the user's repository
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	if err := os.Chmod(temp, 0o755); err != nil { //nolint:gosec // part of the user's repository
		return fmt.Errorf("write %s: %w", target, err)
	}
	if err := os.Rename(temp, target); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s %w", target, ErrExists)
		}
		return fmt.Errorf("write %s: %w", target, err)
	}
	return nil
}
