// Package scaffold makes the .ralph folder of a repository: what `ralph init` writes. [Files] renders it, [Write] puts it
// there, and replaces nothing. [Canaries] reads what a person has put there. It keeps no state and is safe for concurrent use.
package scaffold

import (
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/ecosystem"
)

//go:embed files
var files embed.FS

// Dir is the folder's name, below the top of the checkout.
const Dir = ".ralph"

// promptName is the template of prompts, and Prompt its place in a checkout.
const (
	promptName = "prompt.md"
	Prompt     = Dir + "/" + promptName
)

// configName is the file that makes a folder one that is set up.
const configName = "config.yaml"

// What is part of the user's repository has the modes that the umask leaves, as git's own files have.
const (
	folderMode = 0o777
	fileMode   = 0o666
)

// ErrExists is wrapped by Write when the folder is there already, with a configuration.
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
	Notes                 []string        // on Setup, for its readers
	Tools                 ecosystem.Image // that setup and gate run
	Allow, AllowPrivate   []string        // hosts that setup and gate need
	Env                   []string        // NAME=VALUE that they need
	Provable              bool            // each file of tests can be run by itself
	Show                  []string        // folders of the host that they need
	Prompt                string          // text of prompt.md
	Label                 string          // that picks issues up
	Tracker               string          // where the issues are; empty: auto
	Backlog               bool            // the issues are in a folder here
	Example               bool            // which has an issue to begin with
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

// SampleTitle is the title of the issue that shows the format.
const SampleTitle = "Say what should be true when the work is done"

// ImageFile is the name of the build file for a sandbox's image.
func ImageFile(sandbox string) string {
	if sandbox == "podman" {
		return "Containerfile"
	}
	return "Dockerfile"
}

// Files renders the folder.
func Files(c Choices) ([]File, error) {
	image := ImageFile(c.Sandbox)
	data := struct {
		Choices
		Image, Sample string
	}{c, image, SampleTitle}

	out := []File{{Path: promptName, Data: []byte(c.Prompt)}}
	for _, f := range []struct{ name, source string }{
		{configName, "config.yaml.tmpl"},
		{image, "image.tmpl"},
		{".env.example", "env.tmpl"},
		{".gitignore", "gitignore.tmpl"},
		{"backlog/example.md", "example.md.tmpl"},
	} {
		if !c.Example && strings.HasPrefix(f.name, "backlog/") {
			continue
		}
		t, err := template.New(f.source).Funcs(template.FuncMap{"yaml": keys.YAML}).ParseFS(files, "files/"+f.source)
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

// Write makes top/.ralph with the files and returns those that it has written. They are written to a folder beside it that is
// then renamed, so that a crash or a full disk leaves no half of it. Where the folder is there without a configuration, what it
// lacks is added and what it has stays. Where it has one, or anything else has its name, Write fails with ErrExists and touches nothing.
func Write(top string, files []File) (written []File, err error) {
	target := filepath.Join(top, Dir)
	info, err := os.Lstat(target)
	switch {
	case err == nil && (!info.IsDir() || Configured(top)):
		return nil, fmt.Errorf("%s %w", target, ErrExists)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("look for %s: %w", target, err)
	}
	if err == nil {
		return add(target, files)
	}
	temp := filepath.Join(top, Dir+".new-"+rand.Text())
	if err := os.Mkdir(temp, folderMode); err != nil {
		return nil, fmt.Errorf("write %s: %w", target, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }() // nothing, once it is renamed
	for _, f := range files {
		name := below(temp, f)
		if err := os.MkdirAll(filepath.Dir(name), folderMode); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.Path, err)
		}
		if err := os.WriteFile(name, f.Data, fileMode); err != nil {
			return nil, fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	if err := os.Rename(temp, target); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("%s %w", target, ErrExists)
		}
		return nil, fmt.Errorf("write %s: %w", target, err)
	}
	return files, nil
}

// Configured reports whether top/.ralph has a configuration.
func Configured(top string) bool {
	_, err := os.Lstat(filepath.Join(top, Dir, configName))
	return err == nil
}

// add writes the files that the folder lacks. The configuration comes last: without it, all of this can be done again.
func add(target string, files []File) (written []File, err error) {
	isConfig := func(f File) bool { return f.Path == configName }
	sorted := slices.DeleteFunc(slices.Clone(files), isConfig)
	if i := slices.IndexFunc(files, isConfig); i >= 0 {
		sorted = append(sorted, files[i])
	}
	for _, f := range sorted {
		err := create(below(target, f), f.Data)
		switch {
		case errors.Is(err, fs.ErrExist):
		case err != nil:
			return written, fmt.Errorf("write %s: %w", f.Path, err)
		default:
			written = append(written, f)
		}
	}
	return written, nil
}

// create writes a new file, and replaces none.
func create(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), folderMode); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// below is the file's path in a folder, which it cannot leave.
func below(folder string, f File) string {
	return filepath.Join(folder, filepath.FromSlash(path.Clean("/"+f.Path)))
}
