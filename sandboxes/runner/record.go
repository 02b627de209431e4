package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Names in the folder of artefacts.
const (
	sandboxName  = "sandbox.json"
	commandsName = "commands.jsonl"
	buildLogName = "build.log"
	logsName     = "logs"
	filesName    = "files"
)

// description is the content of sandbox.json.
type description struct {
	Sandbox      string                 `json:"sandbox"`
	Capabilities sandboxes.Capabilities `json:"capabilities"`
	Image        string                 `json:"image,omitempty"`
	Network      Network                `json:"network"`
	Workdir      string                 `json:"workdir"`
	Spec         sandboxes.Spec         `json:"spec"` // names only in the environment
	Started      time.Time              `json:"started"`
	Closed       time.Time              `json:"closed,omitzero"`
	Notices      []sandboxes.Notice     `json:"notices,omitempty"`
}

// record is the folder of artefacts.
type record struct {
	dir  string
	root *os.Root

	mu       sync.Mutex
	sandbox  description // guarded by mu
	commands *os.File    // guarded by mu
	ended    bool        // guarded by mu
}

// openRecord creates the folder, which must not hold another run's record. The workspace's owner may write to the folder
// "files".
func openRecord(dir, workspace string) (*record, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of artefacts: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of artefacts: %w", err)
	}
	r := &record{dir: dir, root: root}
	if err := r.fill(workspace); err != nil {
		return nil, errors.Join(fmt.Errorf("make the artefacts: %w", err), r.close())
	}
	return r, nil
}

func (r *record) fill(workspace string) (err error) {
	if _, err := r.root.Lstat(sandboxName); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s contains the artefacts of another run; name a new folder", r.dir)
	}
	for _, name := range []string{logsName, filesName} {
		if err := r.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	info, err := os.Stat(workspace)
	if err != nil {
		return fmt.Errorf("look at the workspace: %w", err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		if err := r.root.Lchown(filesName, int(st.Uid), int(st.Gid)); err != nil {
			return err
		}
	}
	r.commands, err = r.create(commandsName)
	return err
}

// create creates a file, or truncates the one that a failed Start has left.
func (r *record) create(name string) (*os.File, error) {
	return r.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

// writeStart writes sandbox.json.
func (r *record) writeStart(in *Instance, tag string) error {
	provider, spec := in.config.Session.Provider, in.config.Session.Spec
	spec.Env = names(spec.Env)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sandbox = description{
		Sandbox: provider.Name(), Capabilities: provider.Capabilities(), Image: tag, Network: in.config.Network,
		Workdir: in.Workdir(), Spec: spec, Started: time.Now().UTC(), Notices: in.Notices(),
	}
	return r.write()
}

// names returns the sorted names of an environment.
func names(env []string) []string {
	all := make([]string, 0, len(env))
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// write replaces sandbox.json. mu must be held.
func (r *record) write() error {
	text, err := json.MarshalIndent(r.sandbox, "", "  ")
	if err == nil {
		err = r.root.WriteFile(sandboxName+".new", append(text, '\n'), 0o600)
	}
	if err == nil {
		err = r.root.Rename(sandboxName+".new", sandboxName)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", sandboxName, err)
	}
	return nil
}

// command appends a line to commands.jsonl.
func (r *record) command(c command) error {
	text, err := json.Marshal(c)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil // Close has ended this command; its logs exist
	}
	if err == nil {
		_, err = r.commands.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("record a command: %w", err)
	}
	return nil
}

// complete completes sandbox.json and closes the folder. It may be called again.
func (r *record) complete(notices []sandboxes.Notice) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	r.sandbox.Closed, r.sandbox.Notices = time.Now().UTC(), notices
	if err := r.write(); err != nil {
		return err
	}
	r.ended = true
	return r.close()
}

func (r *record) close() error {
	if r.commands != nil {
		_ = r.commands.Close() // each line was written immediately
	}
	return r.root.Close()
}
