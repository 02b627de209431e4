package sbx

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/internal/engine"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// leastMemory is the minimum memory of a microVM in bytes.
const leastMemory = 512 << 20

// nameFormat matches valid names of a microVM.
var nameFormat = pattern.Lazy(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)

// nameFile is the file in its state folder with the microVM's name.
const nameFile = "name"

// plan describes a microVM before it is created.
type plan struct {
	provider *Provider
	spec     sandboxes.Spec
	name     string
	state    string
	memory   int64
	cpus     int
	pids     int
}

// plan returns a microVM's plan, or an error if sbx cannot meet the spec. It changes nothing.
func (p *Provider) plan(spec sandboxes.Spec) (*plan, error) {
	if spec.Egress != "" {
		return nil, fmt.Errorf("a microVM cannot use ralph's egress proxy: %w; sbx's own policy decides which hosts it can reach",
			sandboxes.ErrUnsupported)
	}
	if spec.Name != "" && !nameFormat().MatchString(spec.Name) {
		return nil, fmt.Errorf("%q cannot be the name of a microVM", spec.Name)
	}
	limits := spec.Limits.WithDefaults()
	pl := &plan{
		provider: p, spec: spec, name: cmp.Or(spec.Name, boxName(spec.Run)), state: p.stateOf(spec.Run),
		memory: limits.Memory, cpus: int(limits.CPUs), pids: limits.PIDs, // sbx supports only whole CPUs
	}
	if pl.memory < leastMemory {
		return nil, sandboxes.Fixable(fmt.Errorf("a microVM with less than %d MiB of memory: %w",
			leastMemory>>20, sandboxes.ErrUnsupported),
			sandboxes.Fix{Setting: sandboxes.SetMemory})
	}
	if pl.cpus < 1 {
		return nil, sandboxes.Fixable(fmt.Errorf("a microVM with less than one CPU: %w",
			sandboxes.ErrUnsupported), sandboxes.Fix{Setting: sandboxes.SetCPUs})
	}
	for _, m := range spec.Mounts {
		if m.Inside != m.Host {
			return nil, fmt.Errorf("mount %s at %s: %w; sbx shows a folder only at its own path",
				m.Host, m.Inside, sandboxes.ErrUnsupported)
		}
		_, info, err := m.Source()
		if err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.Host, err)
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("%s is not a folder, and sbx shows only those", m.Host)
		}
	}
	for _, dir := range pl.folders() {
		if err := shareable(dir); err != nil {
			return nil, err
		}
	}
	return pl, nil
}

// folders returns all host folders that the microVM sees, except ralph's own.
func (pl *plan) folders() []string {
	all := []string{pl.spec.Worktree}
	if pl.spec.GitDir != "" {
		all = append(all, pl.spec.GitDir)
	}
	all = append(all, pl.spec.Objects...)
	for _, m := range pl.spec.Mounts {
		all = append(all, m.Host)
	}
	return all
}

// create returns the arguments that create the microVM.
func (pl *plan) create() []string {
	c := pl.provider.config
	args := []string{
		"create", "--quiet", "--name", pl.name, "--cpus", strconv.Itoa(pl.cpus),
		"--memory", strconv.FormatInt(pl.memory>>20, 10) + "m", "--skills", "off",
	}
	if c.Template != "" {
		args = append(args, "--template", c.Template)
	}
	worktree := pl.spec.Worktree
	if pl.spec.ReadOnly {
		worktree += ":ro"
	}
	args = append(args, c.Agent, worktree)
	if pl.spec.GitDir != "" {
		args = append(args, pl.spec.GitDir)
	}
	for _, dir := range pl.spec.Objects {
		args = append(args, dir+":ro")
	}
	for _, m := range pl.spec.Mounts {
		if m.ReadOnly {
			m.Host += ":ro"
		}
		args = append(args, m.Host)
	}
	return append(args, pl.state+":ro")
}

// box creates the sandbox's state folder, with the scripts that are shown inside.
func (pl *plan) box() (*box, error) {
	if err := os.MkdirAll(pl.state, 0o700); err != nil {
		return nil, fmt.Errorf("make the sandbox's state folder: %w", err)
	}
	b := &box{
		provider: pl.provider, name: pl.name, state: pl.state, workdir: pl.spec.Worktree, gitDir: pl.spec.GitDir,
		pids: pl.pids,
		env:  slices.Concat([]string{"PWD=" + pl.spec.Worktree}, pl.spec.Env),
	}
	err := os.CopyFS(pl.state, files())
	if err == nil {
		err = os.WriteFile(filepath.Join(pl.state, nameFile), []byte(pl.name), 0o644)
	}
	if err != nil {
		err = fmt.Errorf("write the sandbox's files: %w", err)
	} else if pl.spec.GitDir != "" {
		err = sandboxes.SaveGitFile(pl.state, pl.spec.Worktree)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(pl.state))
	}
	return b, nil
}

// configure sets up the network policy, the secrets and git. Then it tests that a command runs, and that git works in the
// private repository.
func (pl *plan) configure(ctx context.Context, b *box) error {
	p, c := pl.provider, pl.provider.config
	for _, rule := range []struct {
		verb  string
		hosts []string
	}{{"allow", c.Allow}, {"deny", c.Deny}} {
		if len(rule.hosts) == 0 {
			continue
		}
		if _, err := p.call(ctx, "policy", rule.verb, "network", strings.Join(rule.hosts, ","), "--sandbox", pl.name); err != nil {
			return fmt.Errorf("%s the network: %w", rule.verb, err)
		}
	}
	for _, service := range slices.Sorted(maps.Keys(c.SecretEnv)) {
		value := c.lookup(c.SecretEnv[service])
		if value == "" {
			continue
		}
		if err := p.SetSecret(ctx, service, value, "--sandbox", pl.name); err != nil {
			return fmt.Errorf("give sbx the secret of %s: %w", service, err)
		}
	}
	if err := b.findUser(ctx); err != nil {
		return err
	}
	argv := []string{"sh", "-c", ":"}
	if pl.spec.GitDir != "" {
		if err := b.asRoot(ctx, "git", pl.spec.GitDir, pl.spec.Worktree); err != nil {
			return fmt.Errorf("show the private repository: %w", err)
		}
		argv = []string{"git", "rev-parse", "--absolute-git-dir"}
	}
	var out, errs bytes.Buffer
	exit, err := b.Exec(ctx, sandboxes.Command{Argv: argv, Stdout: &out, Stderr: &errs})
	switch {
	case err != nil:
		return fmt.Errorf("try a command: %w", err)
	case !exit.OK():
		return fmt.Errorf("try %s inside: %s", argv[0], engine.LastLine(errs.String()))
	}
	if got := strings.TrimSuffix(out.String(), "\n"); pl.spec.GitDir != "" && got != pl.spec.GitDir {
		return fmt.Errorf("git inside works in %q, not in the private repository", got)
	}
	return nil
}
