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

// described is sandbox.json. Of the environment it has the names only.
type described struct {
	Run       string             `json:"run"`
	Sandbox   string             `json:"sandbox"`
	Files     string             `json:"files"`
	Isolation string             `json:"isolation"`
	Image     string             `json:"image,omitempty"`
	Workspace string             `json:"workspace"`
	Workdir   string             `json:"workdir"`
	Network   Network            `json:"network"`
	Mounts    []mounted          `json:"mounts,omitempty"`
	Limits    map[string]float64 `json:"limits,omitempty"`
	Env       []string           `json:"env"`
	Started   time.Time          `json:"started"`
	Closed    *time.Time         `json:"closed,omitempty"`
	Notices   []string           `json:"notices,omitempty"` // what limits have cost
	Left      string             `json:"left,omitempty"`    // which files have not come back
}

type mounted struct {
	Host     string `json:"host"`
	Inside   string `json:"inside"`
	ReadOnly bool   `json:"read_only"`
}

// record is the folder of artefacts.
type record struct {
	dir  string
	root *os.Root

	mu       sync.Mutex
	sandbox  described // guarded by mu; its Run never changes
	commands *os.File  // guarded by mu
	ended    bool      // guarded by mu
}

// openRecord makes the folder, which no other run may have used. Who has the workspace may write to its files.
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
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *record) fill(workspace string) error {
	if _, err := r.root.Lstat(sandboxName); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s holds the artefacts of another run; name a new folder", r.dir)
	}
	for _, name := range []string{logsName, filesName} {
		if err := r.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make the folder of artefacts: %w", err)
		}
	}
	info, err := os.Stat(workspace)
	if err != nil {
		return fmt.Errorf("look at the workspace: %w", err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		if err := r.root.Lchown(filesName, int(st.Uid), int(st.Gid)); err != nil {
			return fmt.Errorf("make the folder of artefacts: %w", err)
		}
	}
	r.commands, err = r.root.OpenFile(commandsName, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the record of commands: %w", err)
	}
	return nil
}

// buildLog is what the engine prints.
func (r *record) buildLog() (*os.File, error) {
	f, err := r.root.OpenFile(buildLogName, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of the build: %w", err)
	}
	return f, nil
}

// started writes sandbox.json.
func (r *record) started(c Config, p sandboxes.Provider, tag, workdir string) error {
	can := p.Capabilities()
	d := described{
		Run: c.Spec.Run, Sandbox: p.Name(), Files: string(can.Files), Isolation: string(can.Isolation), Image: tag,
		Workspace: c.Spec.Worktree, Workdir: workdir, Network: c.Network, Env: []string{}, Started: time.Now().UTC(),
	}
	for _, m := range c.Spec.Mounts {
		d.Mounts = append(d.Mounts, mounted{m.Host, m.Inside, m.ReadOnly})
	}
	for name, value := range map[string]float64{
		"memory": float64(c.Spec.Limits.Memory), "cpus": c.Spec.Limits.CPUs,
		"pids": float64(c.Spec.Limits.PIDs), "disk": float64(c.Spec.Limits.Disk),
	} {
		if value != 0 {
			if d.Limits == nil {
				d.Limits = make(map[string]float64)
			}
			d.Limits[name] = value
		}
	}
	for _, entry := range c.Spec.Env {
		name, _, _ := strings.Cut(entry, "=")
		d.Env = append(d.Env, name)
	}
	slices.Sort(d.Env)
	d.Env = slices.Compact(d.Env)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sandbox = d
	return r.write()
}

// write replaces sandbox.json; mu is held.
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

// command adds a line to commands.jsonl.
func (r *record) command(c command) error {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("record a command: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil // a command that Close has ended; its logs are there
	}
	if _, err := r.commands.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("record a command: %w", err)
	}
	return nil
}

// closed completes sandbox.json and frees the folder.
func (r *record) closed(notices []string, left string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	now := time.Now().UTC()
	r.sandbox.Closed, r.sandbox.Notices, r.sandbox.Left = &now, notices, left
	if err := r.write(); err != nil {
		return err
	}
	r.ended = true
	return r.close()
}

func (r *record) close() error {
	if r.commands != nil {
		_ = r.commands.Close() // every line was written at once
	}
	return r.root.Close()
}
