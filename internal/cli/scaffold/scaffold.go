// Package scaffold creates the .ralph folder of a repository for `ralph init`: [Files] renders its files, and [Write] adds
// them without replacing any. [Canaries] reads the user's own canaries from that folder. The package keeps no state and is
// safe for concurrent use.
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

// Dir is the folder below the top of the checkout.
const Dir = ".ralph"

// promptName is the file of the prompt template, and Prompt its path in a checkout.
const (
	promptName = "prompt.md"
	Prompt     = Dir + "/" + promptName
)

// configName is the file with which a folder counts as set up.
const configName = "config.yaml"

// Files of the user's repository get the modes that the umask leaves, as git's own files do.
const (
	folderMode = 0o777
	fileMode   = 0o666
)

// ErrExists is the error of Write for a folder that has a configuration already.
var ErrExists = errors.New("exists already")

// Choices holds the user's decisions. Agent and Sandbox are required.
type Choices struct {
	Agent, Sandbox, Model string
	About                 agents.Description // of the agent
	Fallback, Attempts    []string           // the other agents that work, as AGENT or AGENT:MODEL
	Review                string             // the reviewer
	Others                []Other            // all other agents, without duplicates
	Command               []string           // for an agent without a program of its own
	SkipPermissions       bool
	Setup, Gate           []string
	Notes                 []string        // comments on Setup
	Tools                 ecosystem.Image // the tools of setup and gate
	Allow, AllowPrivate   []string        // hosts that setup and gate need
	Env                   []string        // their environment, NAME=VALUE
	Retestable            bool            // each file of tests can be run alone
	Show                  []string        // folders of the host that setup and gate need
	Prompt                string          // the text of prompt.md
	Label                 string          // the pick-up label
	Tracker               string          // empty: auto
	Backlog               bool            // issues are files in this repository
	Example               bool            // with a sample issue
}

// Other is an agent besides Choices.Agent.
type Other struct {
	Name  string
	About agents.Description
}

// File is a file to write. Path is relative to Dir, with slashes.
type File struct {
	Path string
	Data []byte
}

// SampleTitle is the title of the sample issue.
const SampleTitle = "Say what should be true when the work is done"

// ImageFile returns the name of the build file for a sandbox's image.
func ImageFile(sandbox string) string {
	if sandbox == "podman" {
		return "Containerfile"
	}
	return "Dockerfile"
}

// Files renders the files of the folder.
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

// Write creates top/.ralph and returns the files that it wrote. A new folder is written under another name and then renamed,
// so a crash or a full disk leaves no half of it. In a folder without a configuration, Write adds the missing files and
// changes none. If the folder has a configuration, or the path is not a folder, it fails with ErrExists and changes nothing.
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
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }() // removes nothing after the rename
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

// add writes the missing files. The configuration is last: as long as it is missing, init can be repeated.
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

// create writes a new file. It never replaces one.
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

// below returns the file's path in a folder. The result is always inside that folder.
func below(folder string, f File) string {
	return filepath.Join(folder, filepath.FromSlash(path.Clean("/"+f.Path)))
}
